// The tokens of a tokenizer and their numbers: the vocab.txt of BERT, one token a line, and the
// vocabularies of subword-nmt, a token and how often it occurs a line. Numbers are those of the
// lines, from 0 on. Thread-safe once made.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fleetx::data {

// By text, found without making a std::string of it.
struct TokenHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using TokenIds = std::unordered_map<std::string, int32_t, TokenHash, std::equal_to<>>;

class Vocabulary {
 public:
  Vocabulary() = default;
  // A token that is empty, is not UTF-8 or occurs twice is kCorrupt; `name` is for messages.
  explicit Vocabulary(std::vector<std::string> tokens, std::string name = "vocabulary");

  // Lines of `token`. Damage is kCorrupt and names the line.
  static Vocabulary parse(std::string_view text, const std::string& name);
  static Vocabulary load(const std::string& path);
  void save(const std::string& path) const;

  const std::string& name() const { return name_; }
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  const std::string& token(int64_t id) const;     // kInvalidArgument beyond size()
  int32_t find(std::string_view token) const;     // -1: not there
  int32_t at(std::string_view token,              // kInvalidArgument where it is not there:
             std::string_view needed_for) const;  // "vocab.txt has no '[MASK]', needed for ..."
  const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  std::string name_ = "vocabulary";
  std::vector<std::string> tokens_;
  TokenIds ids_;
};

// Lines without their ends ("\n" or "\r\n"); nothing after the last end. For files that are held in
// memory.
std::vector<std::string_view> split_lines(std::string_view text);

}  // namespace fleetx::data
