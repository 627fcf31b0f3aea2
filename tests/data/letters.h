// A tokenizer whose tokens are letters, and texts of it.
#pragma once

#include "fleetx/data/wordpiece.h"

namespace fleetx::testing {

// [PAD] [UNK] [CLS] [SEP] [MASK], then a to z: 5 to 30, and inside of words.
inline data::Vocabulary letters() {
  std::vector<std::string> tokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  for (char c = 'a'; c <= 'z'; ++c) tokens.push_back(std::string(1, c));
  for (char c = 'a'; c <= 'z'; ++c) tokens.push_back(std::string("##") + c);
  return data::Vocabulary(std::move(tokens), "letters");
}

}  // namespace fleetx::testing
