// 16-bit floats in kernels: stored in 16 bits, computed in f32. Loops over blocks convert them by
// widen() and narrow(); loops over vectors (channels.h) load and store them directly. Rounding is
// to nearest even, as in base/half.h.
#pragma once

#include <immintrin.h>

#include <cstring>
#include <type_traits>

#include "fleetx/base/dtype.h"

namespace fleetx::ops {

inline bool is_half(DType dtype) { return dtype == bf16 || dtype == f16; }
// What kernels that compute in f32 can read and write.
inline bool is_f32_or_half(DType dtype) { return dtype == f32 || is_half(dtype); }

// out[i] = x[i] for i < n, in this thread.
void widen(DType from, const void* x, float* out, int64_t n);
void narrow(const float* x, DType to, void* out, int64_t n);
// By all threads.
void widen_all(DType from, const void* x, float* out, int64_t n);
void narrow_all(const float* x, DType to, void* out, int64_t n);

// Calls fn with a zero of float, BFloat16 or Half.
template <class Fn>
decltype(auto) with_storage(DType dtype, Fn&& fn) {
  if (dtype == bf16) return fn(BFloat16{});
  if (dtype == f16) return fn(Half{});
  return fn(float{});
}

// Neighbouring lanes in one vector; float itself where they are taken one by one.
typedef float Vector8 __attribute__((vector_size(32)));
typedef float Vector16 __attribute__((vector_size(64)));
template <int kLanes>
using Vector = std::conditional_t<kLanes == 8, Vector8, Vector16>;

namespace detail {

// Integers of a vector's lanes.
template <class T>
struct LanesOf;
template <>
struct LanesOf<Vector8> {
  typedef uint32_t Words __attribute__((vector_size(32)));
  typedef int32_t Ints __attribute__((vector_size(32)));
  typedef uint16_t Shorts __attribute__((vector_size(16)));
};
template <>
struct LanesOf<Vector16> {
  typedef uint32_t Words __attribute__((vector_size(64)));
  typedef int32_t Ints __attribute__((vector_size(64)));
  typedef uint16_t Shorts __attribute__((vector_size(32)));
};

}  // namespace detail

// Always inlined: how a vector is returned depends on the instruction set of the function.
template <class T>
__attribute__((always_inline)) inline T load(const float* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
__attribute__((always_inline)) inline T load(const BFloat16* from) {
  if constexpr (std::is_same_v<T, float>) {
    return *from;
  } else {
    using Words = typename detail::LanesOf<T>::Words;
    typename detail::LanesOf<T>::Shorts bits;
    std::memcpy(&bits, from, sizeof(bits));
    return reinterpret_cast<T>(__builtin_convertvector(bits, Words) << 16);
  }
}

template <class T>
__attribute__((always_inline)) inline T load(const Half* from) {
  if constexpr (std::is_same_v<T, float>) {
    return *from;
  } else {
    using Words = typename detail::LanesOf<T>::Words;
    using Ints = typename detail::LanesOf<T>::Ints;
    typename detail::LanesOf<T>::Shorts bits;
    std::memcpy(&bits, from, sizeof(bits));
    const Words all = __builtin_convertvector(bits, Words), magnitude = all & 0x7fffu;
    const T subnormal = __builtin_convertvector(reinterpret_cast<Ints>(magnitude), T) * 0x1p-24f;
    // The exponent's bias is larger by 112; infinity and NaN keep the largest exponent.
    const Words large =
        (magnitude << 13) + (magnitude >= 0x7c00u ? Words{} + 0x70000000u : Words{} + 0x38000000u);
    const Words value = magnitude < 0x400u ? reinterpret_cast<Words>(subnormal) : large;
    return reinterpret_cast<T>(value | (all & 0x8000u) << 16);
  }
}

namespace detail {

template <class T>
__attribute__((always_inline)) inline typename LanesOf<T>::Shorts bits_of(const T& value,
                                                                          BFloat16) {
  using Words = typename LanesOf<T>::Words;
  const Words u = reinterpret_cast<Words>(value);
  const Words rounded = u + 0x7fffu + ((u >> 16) & 1u);
  const Words kept = (u & 0x7fffffffu) > 0x7f800000u ? u | 0x400000u : rounded;
  return __builtin_convertvector(kept >> 16, typename LanesOf<T>::Shorts);
}

template <class T>
__attribute__((always_inline)) inline typename LanesOf<T>::Shorts bits_of(const T& value, Half) {
  using Words = typename LanesOf<T>::Words;
  const Words u = reinterpret_cast<Words>(value), magnitude = u & 0x7fffffffu;
  const Words normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // The float adder rounds what becomes subnormal.
  const T shifted = reinterpret_cast<T>(magnitude) + 0.5f;
  const Words small = reinterpret_cast<Words>(shifted) - 0x3f000000u;
  const Words finite = magnitude < 0x38800000u ? small : normal;
  const Words large = magnitude > 0x7f800000u ? Words{} + 0x7e00u : Words{} + 0x7c00u;
  const Words bits = magnitude >= 0x477ff000u ? large : finite;
  return __builtin_convertvector(bits | ((u >> 16) & 0x8000u), typename LanesOf<T>::Shorts);
}

// Past the caches where kStream: a plain store would first read the old contents. Then `to` must be
// aligned to 16 bytes.
template <bool kStream, class T>
__attribute__((always_inline)) inline void put(void* to, const T& value) {
  if constexpr (!kStream || sizeof(T) < sizeof(__m128)) {
    std::memcpy(to, &value, sizeof(T));
  } else {
    __m128 parts[sizeof(T) / sizeof(__m128)];
    std::memcpy(parts, &value, sizeof(T));
    auto* at = static_cast<float*>(to);
    for (const __m128& part : parts) {
      _mm_stream_ps(at, part);
      at += 4;
    }
  }
}

}  // namespace detail

// With kStream past the caches; finish_streams() ends it.
template <bool kStream = false, class T>
__attribute__((always_inline)) inline void store(float* to, const T& value) {
  detail::put<kStream>(to, value);
}
template <bool kStream = false, class S, class T>
__attribute__((always_inline)) inline void store(S* to, const T& value) {
  if constexpr (std::is_same_v<T, float>)
    *to = S(value);
  else
    detail::put<kStream>(to, detail::bits_of(value, S{}));
}
inline void finish_streams() { _mm_sfence(); }

}  // namespace fleetx::ops
