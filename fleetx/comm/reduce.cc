#include "fleetx/comm/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

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

template <class T, ReduceOp op, size_t n, size_t m>
inline void reduce_range(std::array<const T*, n> in, std::array<T*, m> out, int64_t begin,
                         int64_t end, int divisor) {
  using A = Sum<T>;
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    A sum = accumulate<op>(static_cast<A>(in[0][i]), static_cast<A>(in[1][i]));
    if constexpr (n == 4)
      sum = accumulate<op>(sum, accumulate<op>(static_cast<A>(in[2][i]), static_cast<A>(in[3][i])));
    if constexpr (op == ReduceOp::kAverage) sum = divide(sum, divisor);
#pragma GCC unroll 4
    for (size_t d = 0; d < m; ++d) out[d][i] = static_cast<T>(sum);
  }
}

// Few vectors, and `m` that get the result: one pass over their memory.
template <class T, ReduceOp op, size_t n, size_t m>
void reduce_few(std::span<const void* const> sources, std::span<void* const> destinations,
                int64_t count, int divisor) {
  std::array<const T*, n> in;
  std::array<T*, m> out;
  for (size_t s = 0; s < n; ++s) in[s] = static_cast<const T*>(sources[s]);
  for (size_t d = 0; d < m; ++d) out[d] = static_cast<T*>(destinations[d]);
  int64_t part = 0;
  constexpr int64_t kStep = 256 / sizeof(T);
  if (n == 2 && count * static_cast<int64_t>(sizeof(T)) <= kInCaches)
    part = count / kStreams / kStep * kStep;
  if (part > 0)
    vectorized([=] {
      for (int64_t at = 0; at < part; at += kStep)
        for (int64_t s = 0; s < kStreams; ++s)
          reduce_range<T, op>(in, out, s * part + at, s * part + at + kStep, divisor);
    });
  vectorized([=] { reduce_range<T, op>(in, out, kStreams * part, count, divisor); });
}

// Reduces one block of all operands: nodes of the tree are kept in blocks on the stack.
template <class T, ReduceOp op>
class BlockReduction {
 public:
  using A = Sum<T>;

  BlockReduction(std::span<const Operand> operands, int64_t begin, int64_t count)
      : operands_(operands), begin_(begin), count_(count) {}

  A* run() {
    reduce({operands_.front().ranks.first, operands_.back().ranks.last}, 0);
    return blocks_[0];
  }

 private:
  // 2^20 ranks; blocks that are not needed are never touched.
  static constexpr size_t kMaxDepth = 21;

  bool next_is(RankRange node) const {
    return next_ < operands_.size() && operands_[next_].ranks == node;
  }

  template <class Fn>
  void with_next(const Fn& fn) {
    const Operand& operand = operands_[next_++];
    if (!std::is_same_v<A, T> && operand.is_sum)
      fn(static_cast<const A*>(operand.data) + begin_);
    else
      fn(static_cast<const T*>(operand.data) + begin_);
  }

  void reduce(RankRange node, size_t depth) {
    FLEETX_CHECK(depth < kMaxDepth);
    A* const out = blocks_[depth];
    if (next_is(node))
      return with_next([&](auto* from) {
        vectorized([=, n = count_] {
          for (int64_t i = 0; i < n; ++i) out[i] = static_cast<A>(from[i]);
        });
      });
    const RankRange left{node.first, middle_of(node)}, right{middle_of(node), node.last};
    if (next_is(left) && next_ + 1 < operands_.size() && operands_[next_ + 1].ranks == right)
      return with_next([&](auto* a) {
        with_next([&](auto* b) {
          vectorized([=, n = count_] {
            for (int64_t i = 0; i < n; ++i)
              out[i] = accumulate<op>(static_cast<A>(a[i]), static_cast<A>(b[i]));
          });
        });
      });
    reduce(left, depth);
    if (next_is(right)) return with_next([&](auto* from) { add(out, from); });
    reduce(right, depth + 1);
    add(out, blocks_[depth + 1]);
  }

  template <class B>
  void add(A* out, const B* from) {
    vectorized([=, n = count_] {
      for (int64_t i = 0; i < n; ++i) out[i] = accumulate<op>(out[i], static_cast<A>(from[i]));
    });
  }

  std::span<const Operand> operands_;
  int64_t begin_, count_;
  size_t next_ = 0;
  alignas(64) A blocks_[kMaxDepth][kBlock];
};

template <class T, ReduceOp op>
void reduce_blocks(std::span<const Operand> operands, std::span<void* const> destinations,
                   int64_t count, int divisor) {
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t block = std::min(kBlock, count - begin);
    BlockReduction<T, op> reduction(operands, begin, block);
    const auto sum = reduction.run();
    if constexpr (op == ReduceOp::kAverage)
      vectorized([=] {
        for (int64_t i = 0; i < block; ++i) sum[i] = divide(sum[i], divisor);
      });
    for (void* destination : destinations)
      vectorized([=, out = static_cast<T*>(destination) + begin] {
        for (int64_t i = 0; i < block; ++i) out[i] = static_cast<T>(sum[i]);
      });
  }
}

template <class T, ReduceOp op>
void reduce_all(std::span<const Operand> operands, std::span<void* const> destinations,
                int64_t count, int divisor) {
  const size_t n = operands.size(), m = destinations.size();
  // Two nodes are the whole tree; they may be sums if these are of the same type.
  const bool two = n == 2 && m <= 2 &&
                   (std::is_same_v<T, Sum<T>> || (!operands[0].is_sum && !operands[1].is_sum));
  // As many ranks as operands: all are vectors.
  const bool four = n == 4 && m == 4 && operands.back().ranks.last == 4;
  if (two || four) {
    const void* sources[4];
    for (size_t i = 0; i < n; ++i) sources[i] = operands[i].data;
    if (four) return reduce_few<T, op, 4, 4>({sources, n}, destinations, count, divisor);
    if (m == 2) return reduce_few<T, op, 2, 2>({sources, n}, destinations, count, divisor);
    return reduce_few<T, op, 2, 1>({sources, n}, destinations, count, divisor);
  }
  reduce_blocks<T, op>(operands, destinations, count, divisor);
}

// Calls fn with the op as a constant.
template <class Fn>
void with_op(ReduceOp op, const Fn& fn) {
  using enum ReduceOp;
  switch (op) {
    case kSum: return fn(std::integral_constant<ReduceOp, kSum>{});
    case kProd: return fn(std::integral_constant<ReduceOp, kProd>{});
    case kMin: return fn(std::integral_constant<ReduceOp, kMin>{});
    case kMax: return fn(std::integral_constant<ReduceOp, kMax>{});
    case kAverage: return fn(std::integral_constant<ReduceOp, kAverage>{});
  }
}

// Vectors as operands, without an allocation for few of them.
template <class Fn>
void with_operands(std::span<const void* const> sources, const Fn& fn) {
  constexpr size_t kFew = 16;
  Operand few[kFew];
  std::vector<Operand> many(sources.size() > kFew ? sources.size() : 0);
  Operand* const operands = many.empty() ? few : many.data();
  for (size_t r = 0; r < sources.size(); ++r)
    operands[r] = {sources[r], {static_cast<int>(r), static_cast<int>(r) + 1}, false};
  fn(std::span<const Operand>(operands, sources.size()));
}

}  // namespace

void reduce_operands(DType dtype, ReduceOp op, std::span<const Operand> operands,
                     std::span<void* const> destinations, int64_t count, int divisor) {
  if (count == 0) return;
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, bool>)
      with_op(op, [&](auto constant) {
        reduce_all<T, decltype(constant)::value>(operands, destinations, count, divisor);
      });
  });
}

void reduce_vectors(DType dtype, ReduceOp op, std::span<const void* const> sources,
                    std::span<void* const> destinations, int64_t count, int divisor) {
  with_operands(sources, [&](std::span<const Operand> operands) {
    reduce_operands(dtype, op, operands, destinations, count, divisor);
  });
}

void reduce_node(DType dtype, ReduceOp op, std::span<const void* const> sources, void* sum,
                 int64_t count) {
  if (count == 0) return;
  if (op == ReduceOp::kAverage) op = ReduceOp::kSum;
  if (sum_type(dtype) == dtype) {
    void* const out[] = {sum};
    return reduce_vectors(dtype, op, sources, out, count, 1);
  }
  with_operands(sources, [&](std::span<const Operand> operands) {
    with_type(dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_same_v<T, Sum<T>>)
        with_op(op, [&](auto constant) {
          for (int64_t begin = 0; begin < count; begin += kBlock) {
            const int64_t block = std::min(kBlock, count - begin);
            BlockReduction<T, decltype(constant)::value> reduction(operands, begin, block);
            copy(static_cast<Sum<T>*>(sum) + begin, reduction.run(),
                 static_cast<size_t>(block) * sizeof(Sum<T>));
          }
        });
    });
  });
}

DType sum_type(DType dtype) {
  DType sum = dtype;
  with_type(dtype, [&](auto zero) { sum = DTypeOf<Sum<decltype(zero)>>::value; });
  return sum;
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
