// Numbers in text, several times as fast as std::from_chars: eight digits at a time.
//
// The text ends with a byte that no number contains, such as a newline, and kPastEnd readable bytes
// follow it, so that nothing here looks for the end. Each function gives the place after the
// number, or null where there is none or where it does not fit the type; the caller checks what
// follows.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace fleetx::data {

inline constexpr size_t kPastEnd = 16;

namespace detail {

inline uint64_t eight_bytes(const char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, 8);
  return word;
}

// How many of eight characters, the first in the low byte, are digits before the first that is not.
inline int leading_digits(uint64_t word) {
  const uint64_t x = word ^ 0x3030303030303030ull;  // digits become 0 to 9
  // Above 9 the sum has its high bit set. A carry goes to later characters only.
  const uint64_t other = ((x + 0x7676767676767676ull) | x) & 0x8080808080808080ull;
  return other == 0 ? 8 : std::countr_zero(other) / 8;
}

// The value of the first `digits` (1 to 8) of eight characters: pairs, fours, all.
inline uint64_t value_of(uint64_t word, int digits) {
  uint64_t x = (word ^ 0x3030303030303030ull) << (64 - 8 * digits);
  x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ffull;
  x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffffull;
  return (x * 10000 + (x >> 32)) & 0xffffffffull;
}

inline constexpr uint64_t kTens[] = {1,       10,        100,        1'000,      10'000,
                                     100'000, 1'000'000, 10'000'000, 100'000'000};

// Goes on with `value`; beyond 19 digits the result is meaningless.
inline const char* read_digits(const char* at, uint64_t& value) {
  for (;;) {
    const uint64_t word = eight_bytes(at);
    const int n = leading_digits(word);
    if (n == 0) return at;
    value = value * kTens[n] + value_of(word, n);
    at += n;
    if (n < 8) return at;
  }
}

const char* read_any_float(const char* at, float& value);  // all forms, slowly

}  // namespace detail

inline const char* read_int(const char* at, int64_t& value) {
  const uint64_t word = detail::eight_bytes(at);
  if (const int n = detail::leading_digits(word); n > 0 && n < 8) [[likely]] {
    value = static_cast<int64_t>(detail::value_of(word, n));
    return at + n;
  }
  const bool negative = *at == '-';
  at += negative;
  uint64_t magnitude = 0;
  const char* const end = detail::read_digits(at, magnitude);
  if (end - at >= 19) [[unlikely]] {  // may be too large, or have zeros in front
    while (*at == '0' && end - at > 1) ++at;
    const uint64_t most = uint64_t{INT64_MAX} + negative;
    if (end - at > 19 || magnitude > most) return nullptr;
  }
  if (end == at) return nullptr;
  value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  return end;
}

// Rounded as std::from_chars does, for every text. What is too small for a float is 0.
inline const char* read_float(const char* at, float& value) {
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                       1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
  const char* const begin = at;
  const bool negative = *at == '-';
  at += negative;
  uint64_t digits = 0;
  const char* const first = at;
  at = detail::read_digits(at, digits);
  int64_t count = at - first, after_point = 0;
  if (*at == '.') {
    const char* const point = ++at;
    at = detail::read_digits(at, digits);
    after_point = at - point;
    count += after_point;
  }
  if (count == 0 || count > 19 || (*at | 32) == 'e') [[unlikely]]
    return detail::read_any_float(begin, value);
  // Two roundings to double, at most 2 units of its last place away. Rounding to float afterwards
  // is wrong only if that is at the middle between two floats.
  const double near = static_cast<double>(digits) / kPowers[after_point];
  const uint64_t below_float = std::bit_cast<uint64_t>(near) & 0x1fffffff;
  if (below_float - 0x0ffffffc <= 8) [[unlikely]]
    return detail::read_any_float(begin, value);
  value = static_cast<float>(negative ? -near : near);
  return at;
}

}  // namespace fleetx::data
