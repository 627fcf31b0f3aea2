// UTF-8: is it, what is wrong, and its code points.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fleetx::data {

// The place of the first byte that does not belong to UTF-8 (overlong forms, surrogates and values
// above 10FFFF do not); npos: all of it is fine.
size_t find_invalid_utf8(std::string_view text);

// With U+FFFD in place of every byte sequence that is not UTF-8.
std::string replace_invalid_utf8(std::string_view text);

// The code point at `at`, which moves behind it. The text must be valid and not at its end.
inline char32_t next_code_point(const char*& at) {
  const auto byte = [&at] { return static_cast<unsigned char>(*at++); };
  const auto more = [&byte](char32_t high) { return high << 6 | (byte() & 0x3fu); };
  const char32_t first = byte();
  if (first < 0x80) return first;
  if (first < 0xe0) return more(first & 0x1f);
  if (first < 0xf0) return more(more(first & 0x0f));
  return more(more(more(first & 0x07)));
}

void append_utf8(std::string& to, char32_t code_point);

// How many code points valid text has.
size_t count_code_points(std::string_view text);

}  // namespace fleetx::data
