#include "fleetx/comm/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "fleetx/base/error.h"
#include "fleetx/base/simd.h"

namespace fleetx::comm {
namespace {

// A block of each source stays in the L1 cache while it is summed.
constexpr int64_t kBlock = 1024;

template <class T>
struct SumOf : std::type_identity<T> {};
template <>
struct SumOf<Half> : std::type_identity<float> {};
template <>
struct SumOf<BFloat16> : std::type_identity<float> {};
template <>
struct SumOf<uint8_t> : std::type_identity<int32_t> {};
template <>
struct SumOf<bool> : std::type_identity<bool> {};
template <class T>
using Sum = typename SumOf<T>::type;

template <ReduceOp op, class A>
A combine(A a, A b) {
  if constexpr (op == ReduceOp::kProd)
    return static_cast<A>(a * b);
  else if constexpr (op == ReduceOp::kMin)
    return b < a ? b : a;
  else if constexpr (op == ReduceOp::kMax)
    return a < b ? b : a;
  else
    return static_cast<A>(a + b);
}

// Signed integers wrap around; computed as unsigned, because signed overflow is undefined.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T> && std::is_signed_v<T>,
                                             std::make_unsigned<T>, std::type_identity<T>>::type;

template <ReduceOp op, class A>
A accumulate(A a, A b) {
  if constexpr (op == ReduceOp::kMin || op == ReduceOp::kMax)
    return combine<op>(a, b);
  else
    return static_cast<A>(combine<op>(static_cast<Wrapping<A>>(a), static_cast<Wrapping<A>>(b)));
}

template <class A>
A divide(A a, int divisor) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(a / divisor);
  else
    return a / static_cast<A>(divisor);
}

// Data that another core has just written arrives faster when several streams are read in turn: the
// hardware prefetches each of them, within a page.
constexpr int64_t kStreams = 4, kInCaches = 512 << 10;

template <class T, ReduceOp op, size_t n>
inline void reduce_range(std::array<const T*, n> in, std::array<T*, n> out, int64_t begin,
                         int64_t end, int divisor) {
  using A = Sum<T>;
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    A sum = static_cast<A>(in[0][i]);
#pragma GCC unroll 4
    for (size_t s = 1; s < n; ++s) sum = accumulate<op>(sum, static_cast<A>(in[s][i]));
    if constexpr (op == ReduceOp::kAverage) sum = divide(sum, divisor);
#pragma GCC unroll 4
    for (size_t s = 0; s < n; ++s) out[s][i] = static_cast<T>(sum);
  }
}

// Few ranks that all get the result: one pass over their memory.
template <class T, ReduceOp op, size_t n>
void reduce_few(std::span<const void* const> sources, std::span<void* const> destinations,
                int64_t count, int divisor) {
  std::array<const T*, n> in;
  std::array<T*, n> out;
  for (size_t s = 0; s < n; ++s) {
    in[s] = static_cast<const T*>(sources[s]);
    out[s] = static_cast<T*>(destinations[std::min(s, destinations.size() - 1)]);
  }
  int64_t part = 0;
  constexpr int64_t kStep = 256 / sizeof(T);
  if (n == 2 && count * static_cast<int64_t>(sizeof(T)) <= kInCaches)
    part = count / kStreams / kStep * kStep;
  if (part > 0)
    vectorized([=] {
      for (int64_t at = 0; at < part; at += kStep)
        for (int64_t s = 0; s < kStreams; ++s)
          reduce_range<T, op, n>(in, out, s * part + at, s * part + at + kStep, divisor);
    });
  vectorized([=] { reduce_range<T, op, n>(in, out, kStreams * part, count, divisor); });
}

template <class T, ReduceOp op>
void reduce_block(std::span<const void* const> sources, std::span<void* const> destinations,
                  int64_t begin, int64_t count, int divisor) {
  using A = Sum<T>;
  alignas(64) A sum[kBlock];
  const size_t n = sources.size();
  const auto source = [&](size_t i) { return static_cast<const T*>(sources[i]) + begin; };
  vectorized([=, out = &sum[0], first = source(0)] {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<A>(first[i]);
  });
  for (size_t s = 1; s < n; ++s)
    vectorized([=, out = &sum[0], next = source(s)] {
      for (int64_t i = 0; i < count; ++i) out[i] = accumulate<op>(out[i], static_cast<A>(next[i]));
    });
  if constexpr (op == ReduceOp::kAverage)
    vectorized([=, out = &sum[0]] {
      for (int64_t i = 0; i < count; ++i) out[i] = divide(out[i], divisor);
    });
  for (void* destination : destinations)
    vectorized([=, from = &sum[0], out = static_cast<T*>(destination) + begin] {
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(from[i]);
    });
}

template <class T, ReduceOp op>
void reduce_all(std::span<const void* const> sources, std::span<void* const> destinations,
                int64_t count, int divisor) {
  if (sources.size() == 2) return reduce_few<T, op, 2>(sources, destinations, count, divisor);
  if (sources.size() == 4 && destinations.size() == 4)
    return reduce_few<T, op, 4>(sources, destinations, count, divisor);
  for (int64_t begin = 0; begin < count; begin += kBlock)
    reduce_block<T, op>(sources, destinations, begin, std::min(kBlock, count - begin), divisor);
}

template <class T>
void reduce_type(ReduceOp op, std::span<const void* const> sources,
                 std::span<void* const> destinations, int64_t count, int divisor) {
  switch (op) {
    case ReduceOp::kSum: return reduce_all<T, ReduceOp::kSum>(sources, destinations, count, 1);
    case ReduceOp::kProd: return reduce_all<T, ReduceOp::kProd>(sources, destinations, count, 1);
    case ReduceOp::kMin: return reduce_all<T, ReduceOp::kMin>(sources, destinations, count, 1);
    case ReduceOp::kMax: return reduce_all<T, ReduceOp::kMax>(sources, destinations, count, 1);
    case ReduceOp::kAverage:
      return reduce_all<T, ReduceOp::kAverage>(sources, destinations, count, divisor);
  }
}

}  // namespace

void reduce_vectors(DType dtype, ReduceOp op, std::span<const void* const> sources,
                    std::span<void* const> destinations, int64_t count, int divisor) {
  if (count == 0) return;
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, bool>)
      reduce_type<T>(op, sources, destinations, count, divisor);
  });
}

DType sum_type(DType dtype) {
  DType sum = dtype;
  with_type(dtype, [&](auto zero) { sum = DTypeOf<Sum<decltype(zero)>>::value; });
  return sum;
}

void convert(DType from_type, const void* from, DType to_type, void* to, int64_t count) {
  with_type(from_type, [&](auto a) {
    with_type(to_type, [&](auto b) {
      using A = decltype(a);
      using B = decltype(b);
      if constexpr (std::is_same_v<Sum<A>, B> || std::is_same_v<A, Sum<B>>)
        vectorized([=, in = static_cast<const A*>(from), out = static_cast<B*>(to)] {
          for (int64_t i = 0; i < count; ++i) out[i] = static_cast<B>(in[i]);
        });
      else
        FLEETX_CHECK(false, "from ", name_of(from_type), " to ", name_of(to_type));
    });
  });
}

void copy(void* to, const void* from, size_t bytes) {
  if (to == from || bytes == 0) return;
  if (bytes < 256) {
    std::memcpy(to, from, bytes);
    return;
  }
  vectorized(
      [=, out = static_cast<unsigned char*>(to), in = static_cast<const unsigned char*>(from)] {
#pragma GCC ivdep
        for (size_t i = 0; i < bytes; ++i) out[i] = in[i];
      });
}

}  // namespace fleetx::comm
