// What BERT's basic tokenization does with each character, from Unicode's tables (ICU): the text
// that takes its place, and whether it separates words or is one by itself.
//
//   nothing   U+0000, U+FFFD, categories Cc (but tab, newline, return), Cf and Co; marks (Mn) where
//             accents are stripped
//   space     tab, newline, return, White_Space
//   alone     CJK ideographs; punctuation: categories P*, and all ASCII that is neither letter nor
//             digit
//   word      all others
//
// The text is that of the canonical decomposition (NFD) without marks, in lower case, as far as the
// options ask for it. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

namespace fleetx::data {

enum class CharKind : uint8_t { kNothing, kSpace, kAlone, kWord };

struct CharOptions {
  bool lowercase = true;
  bool strip_accents = true;
};

class Characters {
 public:
  struct Entry {
    uint16_t begin = 0;  // in the page's text
    uint8_t length = 0;  // bytes
    CharKind kind = CharKind::kWord;
  };
  struct Page {  // 256 code points
    std::array<Entry, 256> entries;
    std::string text;
    std::string_view text_of(const Entry& e) const {
      return std::string_view(text).substr(e.begin, e.length);
    }
  };

  explicit Characters(CharOptions options) : options_(options), ascii_(page(0)) {}
  ~Characters();
  Characters(const Characters&) = delete;
  Characters& operator=(const Characters&) = delete;

  const CharOptions& options() const { return options_; }
  const Page& ascii() const { return ascii_; }  // U+0000 to U+00FF
  // Pages are made when the first of their characters is met: a text has few of the 4,352.
  const Page& page(char32_t code_point) const {
    const Page* known = pages_[code_point >> 8].load(std::memory_order_acquire);
    return known != nullptr ? *known : make_page(code_point >> 8);
  }

 private:
  const Page& make_page(size_t number) const;

  CharOptions options_;
  mutable std::mutex making_;
  mutable std::array<std::atomic<const Page*>, 0x1100> pages_{};
  const Page& ascii_;
};

}  // namespace fleetx::data
