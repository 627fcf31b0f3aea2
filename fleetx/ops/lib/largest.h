// The k elements of the largest magnitude: exactly k, and always the same ones. Elements are
// ordered by the bits of their magnitude, so that a NaN is larger than everything; of equal ones
// the first is larger.
//
// A sample says which magnitude a few more than k elements reach. One pass over x lists those with
// their places; the k-th largest is found among them, digit by digit. So x is read once, and little
// is written where k is small.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace fleetx::ops {

// Where the k largest end.
struct Cut {
  uint32_t bits = 0;   // magnitude of the k-th largest
  uint32_t place = 0;  // of the last element of this magnitude that is among them

  static uint32_t magnitude(float x) { return std::bit_cast<uint32_t>(x) & 0x7fffffffu; }
  bool takes(float x, uint32_t at) const {
    const uint32_t m = magnitude(x);
    return m > bits || (m == bits && at <= place);
  }
};

constexpr int64_t kMostElements = int64_t{1} << 32;         // of x
constexpr size_t kLargestScratch = sizeof(uint32_t) << 12;  // bytes

// 1 <= k <= n. `places` has room for n numbers; the first k become where the k largest stand, in
// ascending order; it begins on an 8-byte boundary. `scratch` has kLargestScratch bytes.
Cut find_largest(const float* x, int64_t n, int64_t k, uint32_t* places, uint32_t* scratch);

}  // namespace fleetx::ops
