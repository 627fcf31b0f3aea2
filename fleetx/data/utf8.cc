#include "fleetx/data/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace fleetx::data {
namespace {

bool continues(std::string_view text, size_t at, unsigned low = 0x80, unsigned high = 0xbf) {
  if (at >= text.size()) return false;
  const auto byte = static_cast<unsigned char>(text[at]);
  return byte >= low && byte <= high;
}

// Bytes of the sequence at `at`, or 0 where there is none. `whole`: as many bytes as could have
// begun one (table 3-7 of the Unicode standard), at least 1.
size_t sequence_at(std::string_view text, size_t at, size_t& whole) {
  const auto first = static_cast<unsigned char>(text[at]);
  whole = 1;
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (!continues(text, at + 1, low, high)) return 0;
  for (whole = 2; whole < length; ++whole)
    if (!continues(text, at + whole)) return 0;
  return length;
}

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    uint64_t eight = 0;
    if (at + 8 <= text.size()) {
      std::memcpy(&eight, text.data() + at, 8);
      if ((eight & 0x8080808080808080ull) == 0) {
        at += 8;
        continue;
      }
    }
    size_t whole = 0;
    const size_t length = sequence_at(text, at, whole);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t whole = 0;
    const size_t length = sequence_at(text, at, whole);
    if (length > 0)
      out += text.substr(at, length);
    else
      append_utf8(out, 0xfffd);
    at += std::max(length, whole);
  }
  return out;
}

void append_utf8(std::string& to, char32_t c) {
  const auto put = [&to](char32_t byte) { to += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6), put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 0x3f)), put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18), put(0x80 | (c >> 12 & 0x3f)), put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

size_t count_code_points(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace fleetx::data
