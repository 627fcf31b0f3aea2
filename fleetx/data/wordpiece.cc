#include "fleetx/data/wordpiece.h"

#include "fleetx/data/words.h"

namespace fleetx::data {

WordPiece::WordPiece(Vocabulary vocabulary, CharOptions options)
    : Tokenizer(std::move(vocabulary)),
      characters_(options),
      trie_(this->vocabulary().tokens()),
      inside_(trie_.node_of("##")),
      unknown_(this->vocabulary().at("[UNK]", "a word without pieces")) {}

void WordPiece::encode_valid(std::string_view text, std::vector<int32_t>& to) const {
  for_each_word(text, characters_, [&](std::string_view word) { encode_word(word, to); });
}

void WordPiece::encode_word(std::string_view word, std::vector<int32_t>& to) const {
  const size_t before = to.size();
  const bool too_long = word.size() > kMostCharacters && count_code_points(word) > kMostCharacters;
  int64_t node = too_long ? -1 : int64_t{TokenTrie::kRoot};
  while (!word.empty()) {
    const TokenTrie::Match match =
        node < 0 ? TokenTrie::Match{} : trie_.longest(static_cast<uint32_t>(node), word);
    if (match.token < 0) {
      to.resize(before);
      to.push_back(unknown_);
      return;
    }
    to.push_back(match.token);
    word.remove_prefix(match.length);
    node = inside_;
  }
}

std::string WordPiece::decode(const std::vector<int32_t>& tokens) const {
  std::string text;
  for (const int32_t id : tokens) {
    const std::string& token = vocabulary().token(id);
    const bool inside = token.starts_with("##") && token.size() > 2;
    if (!text.empty() && !inside) text += ' ';
    text += inside ? token.substr(2) : token;
  }
  return text;
}

}  // namespace fleetx::data
