// Functions that compilers can vectorise inside `vectorized` loops, which the ones of the C library
// are not.
#pragma once

#include <bit>
#include <cstdint>

namespace fleetx::ops {

// e^x for x <= 0, with a relative error below 2e-7; 0 below -87.8. NaN stays NaN.
inline float exp_of_negative(float x) {
  x = x < -88.0f ? -88.0f : x;
  // x = n * ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer in the low bits.
  const float shifted = x * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const uint32_t exponent = std::bit_cast<uint32_t>(shifted) << 23;
  return p * std::bit_cast<float>(exponent + 0x3f800000u);
}

// log(1 + x) for 0 <= x <= 1, with a relative error below 3e-7: 2 atanh(x / (2 + x)) as a series.
inline float log1p_of_unit(float x) {
  const float s = x / (2.0f + x), s2 = s * s;
  float p = 2.0f / 15.0f;
  p = p * s2 + 2.0f / 13.0f;
  p = p * s2 + 2.0f / 11.0f;
  p = p * s2 + 2.0f / 9.0f;
  p = p * s2 + 2.0f / 7.0f;
  p = p * s2 + 2.0f / 5.0f;
  p = p * s2 + 2.0f / 3.0f;
  p = p * s2 + 2.0f;
  return p * s;
}

}  // namespace fleetx::ops
