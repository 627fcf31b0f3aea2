// BERT's WordPiece: each word (words.h) becomes the longest token that it begins with, then the
// longest "##..." that the rest begins with, and so on. A word of which a rest is in no token, or
// of more than 100 characters, is [UNK] as a whole.
//
//   WordPiece tokenizer(Vocabulary::load("vocab.txt"), {.lowercase = true});
//   tokenizer.encode("unaffable")       // un ##aff ##able
//
// [CLS], [MASK] and the like in a text are text: four characters more than a word, not that token.
#pragma once

#include "fleetx/data/characters.h"
#include "fleetx/data/token_trie.h"
#include "fleetx/data/tokenizer.h"

namespace fleetx::data {

class WordPiece final : public Tokenizer {
 public:
  static constexpr size_t kMostCharacters = 100;  // of a word

  // A vocabulary without [UNK] is kInvalidArgument.
  explicit WordPiece(Vocabulary vocabulary, CharOptions options = {});

  const Characters& characters() const { return characters_; }
  // Pieces of a word are joined, words separated by a space.
  std::string decode(const std::vector<int32_t>& tokens) const override;

 private:
  void encode_valid(std::string_view text, std::vector<int32_t>& to) const override;
  void encode_word(std::string_view word, std::vector<int32_t>& to) const;

  Characters characters_;
  TokenTrie trie_;
  int64_t inside_;  // the node from which pieces that are not the first go on; -1: there are none
  int32_t unknown_;
};

}  // namespace fleetx::data
