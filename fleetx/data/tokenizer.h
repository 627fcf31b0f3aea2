// From text to numbers of tokens. Thread-safe: all readers share one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleetx/data/vocabulary.h"

namespace fleetx::data {

class Tokenizer {
 public:
  explicit Tokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  // Adds the tokens of a text, without any that mark its begin or end. Text that is not UTF-8 is
  // kInvalidArgument.
  void encode(std::string_view text, std::vector<int32_t>& to) const;
  std::vector<int32_t> encode(std::string_view text) const;
  // The text of these tokens, as far as it can be told from them.
  virtual std::string decode(const std::vector<int32_t>& tokens) const = 0;

 protected:
  virtual void encode_valid(std::string_view text, std::vector<int32_t>& to) const = 0;

 private:
  Vocabulary vocabulary_;
};

}  // namespace fleetx::data
