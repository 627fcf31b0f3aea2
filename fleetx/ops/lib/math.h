// exp, log, tanh, erf, ... for loops that must vectorise: f32 versions without branches, tables or
// library calls, a few units in the last place off at most, NaN and infinities as in <cmath>. The
// f64 overloads are the library's. Polynomials are minimax fits on the stated intervals.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fleetx::ops::math {

namespace detail {

// Adding this rounds to the nearest integer, which then stands in the low bits.
inline constexpr float kRound = 12582912.0f;  // 1.5 * 2^23
inline constexpr float kLog2E = 1.44269504f;
// log(2) in two parts; the first has few bits, so that its products with small integers are exact.
inline constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;

inline float pow2(int32_t n) {  // -126 <= n <= 127
  return std::bit_cast<float>(static_cast<uint32_t>(n + 127) << 23);
}

// x = n * log(2) + r with |r| <= log(2) / 2.
struct Reduced {
  int32_t n;
  float r;
};
inline Reduced reduce(float x) {
  const float shifted = x * kLog2E + kRound;
  const float k = shifted - kRound;
  return {std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound),
          (x - k * kLn2High) - k * kLn2Low};
}

// exp(r) - 1 for |r| <= log(2) / 2, relative to its own size.
inline float expm1_reduced(float r) {
  float q = 0.00138144678f;
  q = q * r + 0.00836878038f;
  q = q * r + 0.0416683942f;
  q = q * r + 0.166665201f;
  q = q * r + 0.499999934f;
  return r + r * r * q;
}

// log(1 + f) + e * log(2) for 1 + f in [sqrt(1/2), sqrt(2)].
inline float log_parts(float f, float e) {
  float q = 0.0674664885f;
  q = q * f - 0.116756478f;
  q = q * f + 0.118881559f;
  q = q * f - 0.124055892f;
  q = q * f + 0.142195534f;
  q = q * f - 0.166679959f;
  q = q * f + 0.200021186f;
  q = q * f - 0.250000096f;
  q = q * f + 0.333333126f;
  const float z = f * f;
  const float small = f * z * q + e * kLn2Low - 0.5f * z;
  return (f + small) + e * kLn2High;
}

// x = m * 2^e with m in [sqrt(1/2), sqrt(2)); x positive and normal.
struct Split {
  float m, e;
};
inline Split split(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const int32_t e = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;
  return {std::bit_cast<float>(bits - (static_cast<uint32_t>(e) << 23)), static_cast<float>(e)};
}

}  // namespace detail

inline float exp(float x) {
  // Beyond these bounds the result is 0 or infinite anyway; a NaN passes both tests.
  float c = x < -104.0f ? -104.0f : x;
  c = c > 89.0f ? 89.0f : c;
  const detail::Reduced s = detail::reduce(c);
  const int32_t half = s.n >> 1;  // 2^n in two factors: n may be 128, or below -126
  return (1.0f + detail::expm1_reduced(s.r)) * detail::pow2(half) * detail::pow2(s.n - half);
}

// exp(x) - 1 for x <= 88.
inline float expm1(float x) {
  const float c = x < -40.0f ? -40.0f : x;
  const detail::Reduced s = detail::reduce(c);
  const float scale = detail::pow2(s.n);
  return scale * detail::expm1_reduced(s.r) + (scale - 1.0f);
}

inline float log(float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kSmallest = std::numeric_limits<float>::min();
  const bool tiny = x < kSmallest;
  const detail::Split s = detail::split(tiny ? x * 0x1p23f : x);
  float y = detail::log_parts(s.m - 1.0f, tiny ? s.e - 23.0f : s.e);
  y = x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : y;
  y = x == 0.0f ? -kInfinity : y;
  return x < kInfinity ? y : x;  // infinity and NaN
}

// log(1 + x) for 0 <= x <= 1, by 2 * atanh(x / (2 + x)).
inline float log1p(float x) {
  const float s = x / (2.0f + x), z = s * s;
  float q = 0.121504449f;
  q = q * z + 0.107138355f;
  q = q * z + 0.143084417f;
  q = q * z + 0.199994389f;
  q = q * z + 0.333333378f;
  return 2.0f * s + 2.0f * s * z * q;
}

inline float tanh(float x) {
  const float a = std::fabs(x);
  const float e = expm1(2.0f * (a > 10.0f ? 10.0f : a));
  return std::copysign(e / (e + 2.0f), x);
}

inline float erf(float x) {
  constexpr float kEnd = 3.937f;  // from here on it rounds to 1
  float c = x < -kEnd ? -kEnd : x;
  c = c > kEnd ? kEnd : c;
  const float t = c * c;
  float p = -1.28972977e-08f;
  p = p * t + 4.62739396e-06f;
  p = p * t + 0.000377444384f;
  p = p * t + 0.00384140687f;
  p = p * t + 0.0542619675f;
  p = p * t + 0.185155554f;
  p = p * t + 1.12837917f;
  float q = 6.25698237e-05f;
  q = q * t + 0.00130300547f;
  q = q * t + 0.0154380484f;
  q = q * t + 0.113895675f;
  q = q * t + 0.497423245f;
  q = q * t + 1.0f;
  return c * p / q;
}

// The slope of gelu, Phi(x) + x * phi(x), within 4e-7: a polynomial of x^2 takes half the time of
// erf and exp.
inline float gelu_slope(float x) {
  constexpr float kEnd = 5.6f;  // beyond, it is 0 or 1 within 4e-7
  float c = x < -kEnd ? -kEnd : x;
  c = c > kEnd ? kEnd : c;
  const float u = c * c * (2.0f / (kEnd * kEnd)) - 1.0f;
  float p = -0.00143012265f;
  p = p * u + 0.00374516379f;
  p = p * u - 0.00221749465f;
  p = p * u + 0.00202234671f;
  p = p * u - 0.0122021437f;
  p = p * u + 0.0236942936f;
  p = p * u - 0.0297159143f;
  p = p * u + 0.0400967076f;
  p = p * u - 0.0558699071f;
  p = p * u + 0.0677170902f;
  p = p * u - 0.0725608096f;
  p = p * u + 0.0713721216f;
  p = p * u - 0.065059863f;
  p = p * u + 0.0567140542f;
  p = p * u - 0.0509605817f;
  p = p * u + 0.0518067144f;
  p = p * u - 0.0642825365f;
  p = p * u + 0.126416653f;
  return 0.5f + c * p;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

inline double exp(double x) { return std::exp(x); }
inline double expm1(double x) { return std::expm1(x); }
inline double log(double x) { return std::log(x); }
inline double log1p(double x) { return std::log1p(x); }
inline double tanh(double x) { return std::tanh(x); }
inline double erf(double x) { return std::erf(x); }
inline double gelu_slope(double x) {
  return 0.5 * (1 + std::erf(x * 0.7071067811865476)) +
         x * 0.3989422804014327 * std::exp(-0.5 * x * x);
}
inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace fleetx::ops::math
