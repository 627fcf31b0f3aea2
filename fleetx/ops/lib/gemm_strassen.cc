#include "fleetx/ops/lib/gemm_strassen.h"

#include <unistd.h>

#include "fleetx/base/simd.h"
#include "fleetx/ops/lib/channels.h"
#include "fleetx/ops/lib/product_parts.h"
#include "fleetx/tensor/buffer.h"

namespace fleetx::ops::strassen {
namespace {

constexpr int64_t kProducts = 7;
constexpr int64_t kMaxInner = 384;   // of a quarter
constexpr int64_t kMaxRows = 1024;   // of a that are packed at a time
constexpr int64_t kGrain = 1 << 24;  // multiplications for which a thread is worth waking
// The parts of a packed operand are written side by side: they must not begin at the same place of
// a page.
constexpr int64_t kGap = 16;

// One product of panels makes kRows x kColumns sums, as many as the registers hold. Quarters are
// kHigh rows by kColumns columns. A block of kWidth columns of b, packed, stays in the second-level
// cache while the rows of a pass through it.
template <int kLanes_>
struct Tile {
  static constexpr int kLanes = kLanes_;
  static constexpr int kRows = kLanes / 2, kVectors = 3, kColumns = kVectors * kLanes;
  static constexpr int kHigh = 8;
  static constexpr int64_t kWidth = 4 * kColumns;
};

constexpr int64_t part_size(int64_t lines, int64_t inner) { return lines * inner + kGap; }
constexpr int64_t kPackedRows = kMaxRows / 16 * kProducts * part_size(8, kMaxInner);
constexpr int64_t kPackedColumns = 2 * kProducts * part_size(Tile<16>::kColumns, kMaxInner);

// The longer, the less often sums are added up; but a block must fit in the second-level cache, as
// 384 elements do with AVX2 only, in half a megabyte.
template <class T>
int64_t longest_inner() {
  static const bool large_cache = sysconf(_SC_LEVEL2_CACHE_SIZE) >= (1 << 20);
  return T::kLanes == 8 && large_cache ? kMaxInner : 256;
}

// Kept by each thread, because steps must not allocate.
float* workspace() {
  thread_local const Buffer memory =
      Buffer::allocate(static_cast<size_t>(kPackedRows + kPackedColumns) * sizeof(float));
  return static_cast<float*>(memory.data());
}

// The body must be inlinable, like that of vectorized().
template <int kLanes, class Body>
void with_lanes(const Body& body) {
  if constexpr (kLanes == 16)
    fleetx::detail::run_avx512(body);
  else
    fleetx::detail::run_avx2(body);
}

// A matrix of float, BFloat16 or Half as lines, rows of a or columns of b: one of the strides is 1.
template <class S>
struct Lines {
  const S* data;
  int64_t line_stride, inner_stride;
  int64_t lines, inner;  // zero is read behind them

  const S* at(int64_t line, int64_t k) const {
    return data + line * line_stride + k * inner_stride;
  }
};

const void* offset(const void* data, DType dtype, int64_t elements) {
  return static_cast<const char*>(data) + elements * static_cast<int64_t>(size_of(dtype));
}
void* offset(void* data, DType dtype, int64_t elements) {
  return static_cast<char*>(data) + elements * static_cast<int64_t>(size_of(dtype));
}

// The same of any type.
struct Operand {
  const void* data;
  DType dtype;
  int64_t line_stride, inner_stride, lines, inner;

  Operand part(int64_t line, int64_t k, int64_t count) const {
    return {offset(data, dtype, line * line_stride + k * inner_stride),
            dtype,
            line_stride,
            inner_stride,
            std::min(count, lines - line),
            inner - k};
  }
  template <class S>
  Lines<S> as() const {
    return {static_cast<const S*>(data), line_stride, inner_stride, lines, inner};
  }
};

// ---- packing ----

using V = Vector8;
typedef float Vector4 __attribute__((vector_size(16)));

// Eight lines at one inner element.
template <class S>
inline V lines_at(const Lines<S>& x, int64_t line, int64_t k) {
  if (x.line_stride == 1 && line + 8 <= x.lines && k < x.inner) return load<V>(x.at(line, k));
  V out{};
  for (int64_t l = 0; l < std::min<int64_t>(8, x.lines - line) && k < x.inner; ++l)
    out[l] = *x.at(line + l, k);
  return out;
}

// Eight lines at eight inner elements, which are neighbours in memory.
template <class S>
inline void transpose(const Lines<S>& x, int64_t line, int64_t k, V (&out)[8]) {
  if (line + 8 > x.lines || k + 8 > x.inner) {
    for (int i = 0; i < 8; ++i) out[i] = lines_at(x, line, k + i);
    return;
  }
  V a[8], b[8];
  for (int i = 0; i < 8; ++i) a[i] = load<V>(x.at(line + i, k));
  for (int i = 0; i < 8; i += 2) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (const int i : {0, 1, 4, 5}) {
    a[i] = __builtin_shufflevector(b[i], b[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    a[i + 2] = __builtin_shufflevector(b[i], b[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (int i = 0; i < 4; ++i) {
    out[i] = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    out[i + 4] = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

enum class Side { kA, kB };

// A group of lines is packed as its seven parts; a part has panels of kWide lines, [inner][kWide].
template <Side side, int kWide>
struct Group {
  static constexpr int64_t kHalf = std::max(8, kWide);  // lines of a quarter
  float* to;
  int64_t inner;  // of a quarter

  // Eight lines from `line` on, at k. The quarters are those of the matrix: in b lines are columns.
  void put(int64_t line, int64_t k, const V& x00, const V& x01, const V& x10, const V& x11) const {
    float* part = to + line / kWide * kWide * inner + k * kWide + line % kWide;
    const auto next = [&](const V& x) {
      if constexpr (kWide >= 8) {
        store(part, x);
      } else {
        store(part, Vector4(__builtin_shufflevector(x, x, 0, 1, 2, 3)));
        store(part + inner * kWide, Vector4(__builtin_shufflevector(x, x, 4, 5, 6, 7)));
      }
      part += part_size(kHalf, inner);
    };
    next(x00 + x11);
    if constexpr (side == Side::kA) {
      next(x10 + x11);
      next(x00);
      next(x11);
      next(x00 + x01);
      next(x10 - x00);
      next(x01 - x11);
    } else {
      next(x00);
      next(x01 - x11);
      next(x10 - x00);
      next(x11);
      next(x00 + x01);
      next(x10 + x11);
    }
  }
};

template <Side side, int kWide, class S>
void pack(const Lines<S>& x, int64_t inner, float* to) {
  using G = Group<side, kWide>;
  constexpr int64_t kHalf = G::kHalf;
  // From the first quarter to those beside and below it.
  constexpr int64_t kRight = side == Side::kA ? 0 : kHalf, kDown = kHalf - kRight;
  const int64_t right = side == Side::kA ? inner : 0, down = inner - right;
  const int64_t group_size = kProducts * part_size(kHalf, inner);
  if (x.line_stride == 1) {
    // Whole cache lines at a time: rows of a matrix are often multiples of a page apart, and then
    // few of them fit in the first-level cache together.
    constexpr int64_t kStep = side == Side::kA ? 8 : 1;
    for (int64_t top = 0; top < inner; top += kStep)
      for (int64_t first = 0; first < x.lines; first += 2 * kHalf) {
        const G group{to + first / (2 * kHalf) * group_size, inner};
        for (int64_t k = top; k < top + kStep; ++k)
          for (int64_t l = 0; l < kHalf; l += 8)
            group.put(l, k, lines_at(x, first + l, k), lines_at(x, first + l + kRight, k + right),
                      lines_at(x, first + l + kDown, k + down),
                      lines_at(x, first + l + kHalf, k + inner));
      }
    return;
  }
  for (int64_t first = 0; first < x.lines; first += 2 * kHalf) {
    const G group{to + first / (2 * kHalf) * group_size, inner};
    for (int64_t l = 0; l < kHalf; l += 8)
      for (int64_t top = 0; top < inner; top += 16) {
        V q[4][2][8];
        for (int i = 0; i < 2; ++i) transpose(x, first + l, top + 8 * i, q[0][i]);
        for (int i = 0; i < 2; ++i) transpose(x, first + l + kRight, top + 8 * i + right, q[1][i]);
        for (int i = 0; i < 2; ++i) transpose(x, first + l + kDown, top + 8 * i + down, q[2][i]);
        for (int i = 0; i < 2; ++i) transpose(x, first + l + kHalf, top + 8 * i + inner, q[3][i]);
        for (int i = 0; i < 2; ++i)
          for (int k = 0; k < 8; ++k)
            group.put(l, top + 8 * i + k, q[0][i][k], q[1][i][k], q[2][i][k], q[3][i][k]);
      }
  }
}

// ---- products of panels ----

enum class To { kNowhere, kSet, kAdd, kSubtract };

template <class T, To to>
void add(const Vector<T::kLanes> (&sums)[T::kRows][T::kVectors], float* tile) {
  if constexpr (to == To::kNowhere) return;
  using Lane = Vector<T::kLanes>;
#pragma GCC unroll 8
  for (int i = 0; i < T::kRows; ++i)
#pragma GCC unroll 3
    for (int v = 0; v < T::kVectors; ++v, tile += T::kLanes) {
      if constexpr (to == To::kSet) store(tile, sums[i][v]);
      if constexpr (to == To::kAdd) store(tile, Lane(load<Lane>(tile) + sums[i][v]));
      if constexpr (to == To::kSubtract) store(tile, Lane(load<Lane>(tile) - sums[i][v]));
    }
}

// Rows of memory, and how far it is from one to the next.
struct Rows {
  const char* data;
  int64_t bytes;
};

// Adds a * b to quarters of the tile. Meanwhile the places of c that come next are fetched.
template <class T, To c00, To c01, To c10, To c11>
void multiply(const float* a, const float* b, int64_t inner, float* tile, Rows next = {}) {
  with_lanes<T::kLanes>([=] {
    using Lane = Vector<T::kLanes>;
    const float *x = a, *y = b;
    Lane sums[T::kRows][T::kVectors] = {};
    for (int row = 0; row < T::kRows; ++row) {
      if (next.data)
        for (int v = 0; v < T::kVectors; ++v)
          __builtin_prefetch(next.data + row * next.bytes + v * 4 * T::kLanes, 1);
      for (int64_t k = inner / T::kRows; k > 0; --k, x += T::kRows, y += T::kColumns) {
        Lane column[T::kVectors];
#pragma GCC unroll 3
        for (int v = 0; v < T::kVectors; ++v) column[v] = load<Lane>(y + v * T::kLanes);
#pragma GCC unroll 8
        for (int i = 0; i < T::kRows; ++i) {
          const Lane factor = x[i] - Lane{};
#pragma GCC unroll 3
          for (int v = 0; v < T::kVectors; ++v) sums[i][v] += factor * column[v];
        }
      }
    }
    constexpr int64_t kQuarter = T::kRows * T::kColumns;
    add<T, c00>(sums, tile);
    add<T, c01>(sums, tile + kQuarter);
    add<T, c10>(sums, tile + 2 * kQuarter);
    add<T, c11>(sums, tile + 3 * kQuarter);
  });
}

// A matrix that is read or written; null: neither.
struct Place {
  void* data;
  int64_t stride;
  DType dtype;

  Place at(int64_t row, int64_t column) const {
    return {data ? offset(data, dtype, row * stride + column) : nullptr, stride, dtype};
  }
  Rows rows() const {
    return {static_cast<const char*>(data), stride * static_cast<int64_t>(size_of(dtype))};
  }
};

// to = from + alpha * sums + bias; from and bias may be null, but not both given.
struct Target {
  Place from, to;
  const float* bias;
  float alpha;

  Target at(int64_t row, int64_t column) const {
    return {from.at(row, column), to.at(row, column), bias ? bias + column : nullptr, alpha};
  }
};

template <class T, class From, class To>
void write(const float* sums, const Target& t, int64_t height, int64_t width) {
  const auto* from = static_cast<const From*>(t.from.data);
  auto* to = static_cast<To*>(t.to.data);
  const int64_t from_stride = t.from.stride, to_stride = t.to.stride;
  with_lanes<T::kLanes>([=, bias = t.bias, alpha = t.alpha] {
    using Lane = Vector<T::kLanes>;
    for (int64_t i = 0; i < height; ++i) {
      const float* sum = sums + i * T::kColumns;
      const From* old = from + i * from_stride;
      To* out = to + i * to_stride;
      int64_t j = 0;
      for (; j + T::kLanes <= width; j += T::kLanes) {
        Lane value = alpha * load<Lane>(sum + j);
        if (from) value = load<Lane>(old + j) + value;
        if (bias) value = value + load<Lane>(bias + j);
        store(out + j, value);
      }
      for (; j < width; ++j) {
        float value = alpha * sum[j];
        if (from) value = static_cast<float>(old[j]) + value;
        if (bias) value = value + bias[j];
        out[j] = static_cast<To>(value);
      }
    }
  });
}

// For `rows` by `columns` of the sums.
template <class T>
void write(const float* sums, const Target& t, int64_t rows, int64_t columns) {
  const int64_t height = std::min<int64_t>(rows, T::kRows),
                width = std::min<int64_t>(columns, T::kColumns);
  if (height <= 0 || width <= 0) return;
  with_storage(t.to.dtype, [&](auto to_zero) {
    using To = decltype(to_zero);
    // A result of 16 bits continues from itself, or from sums in f32.
    with_storage(t.from.dtype, [&](auto from_zero) {
      using From = decltype(from_zero);
      if constexpr (std::is_same_v<From, float> || std::is_same_v<To, float> ||
                    std::is_same_v<From, To>)
        write<T, From, To>(sums, t, height, width);
    });
  });
}

// The tile of c at (row, column); it ends after `rows` and `columns`.
template <class T>
void make(const float* a, const float* b, int64_t inner, const Target& t, int64_t row,
          int64_t column, int64_t rows, int64_t columns) {
  using enum To;
  const int64_t part_a = part_size(T::kHigh, inner), part_b = part_size(T::kColumns, inner);
  const auto x = [=](int i) { return a + i * part_a; };
  const auto y = [=](int i) { return b + i * part_b; };
  const auto target = [&](int i) {
    return t.at(row + i / 2 * T::kHigh, column + i % 2 * T::kColumns);
  };
  const auto place = [&](int i) {
    const Target next = target(i);
    return (next.from.data ? next.from : next.to).rows();
  };
  alignas(64) float tile[4 * T::kRows * T::kColumns];
  multiply<T, kSet, kNowhere, kNowhere, kSet>(x(0), y(0), inner, tile);
  multiply<T, kNowhere, kNowhere, kSet, kSubtract>(x(1), y(1), inner, tile);
  multiply<T, kNowhere, kSet, kNowhere, kAdd>(x(2), y(2), inner, tile);
  multiply<T, kAdd, kNowhere, kAdd, kNowhere>(x(3), y(3), inner, tile, place(0));
  multiply<T, kSubtract, kAdd, kNowhere, kNowhere>(x(4), y(4), inner, tile, place(1));
  multiply<T, kNowhere, kNowhere, kNowhere, kAdd>(x(5), y(5), inner, tile, place(2));
  multiply<T, kAdd, kNowhere, kNowhere, kNowhere>(x(6), y(6), inner, tile, place(3));
  for (int i = 0; i < 4; ++i) {
    const int64_t below = i / 2 * T::kHigh, beside = i % 2 * T::kColumns;
    write<T>(tile + i * T::kRows * T::kColumns, target(i), rows - below, columns - beside);
  }
}

// A matrix b with as many columns as its c. Where c has 16 bits, sums are kept in f32 until the
// last part of the inner dimension.
struct Block {
  Operand b;
  Place c, sums;
  const float* bias;  // null with add
  float alpha;
  bool add, begun, goes_on;

  Target target(bool first, bool last) const {
    const Place& between = c.dtype == f32 ? c : sums;
    const Place nowhere{nullptr, 0, f32};
    const Place& start = begun ? between : add ? c : nowhere;
    return {first ? start : between, last && !goes_on ? c : between, first ? bias : nullptr, alpha};
  }
};

template <class T, Side side, int kWide>
void pack_any(const Operand& x, int64_t inner, float* to) {
  with_storage(x.dtype, [&](auto zero) {
    const auto lines = x.as<decltype(zero)>();
    with_lanes<T::kLanes>([=] { pack<side, kWide>(lines, inner, to); });
  });
}

// What one thread does: `a` has as many rows as every c.
template <class T>
void product(const Operand& a, std::span<const Block> blocks) {
  if (a.lines <= 0) return;  // more threads than parts
  float *packed_a = workspace(), *packed_b = packed_a + kPackedRows;
  const int64_t inner = piece(a.inner, 2 * longest_inner<T>(), 32) / 2;
  const int64_t rows = piece(a.lines, kMaxRows, 2 * T::kHigh);
  const int64_t group_a = kProducts * part_size(T::kHigh, inner);
  const int64_t group_b = kProducts * part_size(T::kColumns, inner);
  for (int64_t k = 0; k < a.inner; k += 2 * inner)
    for (int64_t top = 0; top < a.lines; top += rows) {
      const Operand block_a = a.part(top, k, rows);
      pack_any<T, Side::kA, T::kRows>(block_a, inner, packed_a);
      for (const Block& block : blocks) {
        const Target target = block.target(k == 0, k + 2 * inner >= a.inner);
        for (int64_t left = 0; left < block.b.lines; left += T::kWidth) {
          const Operand block_b = block.b.part(left, k, T::kWidth);
          pack_any<T, Side::kB, T::kColumns>(block_b, inner, packed_b);
          for (int64_t i = 0; i < block_a.lines; i += 2 * T::kHigh)
            for (int64_t sub = 0; sub < T::kHigh; sub += T::kRows)
              for (int64_t j = 0; j < block_b.lines; j += 2 * T::kColumns)
                make<T>(packed_a + i / (2 * T::kHigh) * group_a + sub * inner,
                        packed_b + j / (2 * T::kColumns) * group_b, inner, target, top + i + sub,
                        left + j, block_a.lines - i - sub, block_b.lines - j);
        }
      }
    }
}

template <class T>
void run_parts(const Gemm& g, const Operand& rows, std::span<const Columns> columns) {
  const auto count = static_cast<int64_t>(columns.size());
  // What is summed in a unit must not depend on where a thread begins.
  if (count > 1 && g.columns % (2 * T::kColumns) != 0) {
    for (const Columns& one : columns) run_parts<T>(g, rows, {&one, 1});
    return;
  }
  for_each_part(
      g.rows, g.columns * count, parts_for(g.rows * g.columns * count * g.inner, kGrain),
      2 * T::kHigh, 2 * T::kColumns, [&](int64_t top, int64_t bottom, int64_t left, int64_t right) {
        Block blocks[kMost];
        size_t used = 0;
        for (const auto& [b, c, bias, sums, begun, goes_on] : columns) {
          const Operand all{
              b.data,    g.type_b, g.transpose_b ? b.stride : 1, g.transpose_b ? 1 : b.stride,
              g.columns, g.inner};
          const int64_t from = std::max<int64_t>(left, 0), to = std::min(right, g.columns);
          if (from < to)
            blocks[used++] = {all.part(from, 0, to - from),
                              Place{c.data, c.stride, g.type_c}.at(top, from),
                              Place{sums, g.columns, f32}.at(top, from),
                              bias ? bias + from : nullptr,
                              g.alpha,
                              g.accumulate,
                              begun,
                              goes_on};
          left -= g.columns;
          right -= g.columns;
        }
        product<T>(rows.part(top, 0, bottom - top), {blocks, used});
      });
}

}  // namespace

bool wanted(const Gemm& g) {
  constexpr int64_t kLeast = 512;
  const int64_t least_rows = vector_isa() >= cpu::Isa::kAvx512 ? kLeast : 160;
  return !g.definition && vector_isa() >= cpu::Isa::kAvx2 && g.rows >= least_rows &&
         g.columns >= kLeast && g.inner >= kLeast;
}

void prepare() {
  if (vector_isa() >= cpu::Isa::kAvx2) on_every_thread([] { workspace(); });
}

void run(const Gemm& g, Matrix<const void> a, std::span<const Columns> columns) {
  const Operand rows{a.data, g.type_a, g.transpose_a ? 1 : a.stride, g.transpose_a ? a.stride : 1,
                     g.rows, g.inner};
  if (vector_isa() >= cpu::Isa::kAvx512)
    run_parts<Tile<16>>(g, rows, columns);
  else
    run_parts<Tile<8>>(g, rows, columns);
}

}  // namespace fleetx::ops::strassen
