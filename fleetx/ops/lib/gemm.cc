#include "fleetx/ops/lib/gemm.h"

#include <utility>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/gemm_amx.h"
#include "fleetx/ops/lib/gemm_strassen.h"
#include "fleetx/ops/lib/half.h"
#include "fleetx/ops/lib/onednn.h"
#include "fleetx/ops/lib/product_parts.h"

namespace fleetx::ops {
namespace {

// Adds the bias, to f32, and applies the activation, to a few rows at a time, which stay in the
// first-level cache.
void finish(const float* bias, const ElementLoop* act, void* c, DType type, int64_t rows,
            int64_t columns, int64_t stride) {
  if (!bias && !act) return;
  parallel_for(rows, (1 << 15) / columns + 1, [=](int64_t begin, int64_t end) {
    const int64_t step = (1 << 13) / columns + 1;
    for (int64_t top = begin; top < end; top += step) {
      const int64_t bottom = std::min(top + step, end);
      if (bias)
        vectorized([=, to = static_cast<float*>(c)] {
          for (int64_t row = top; row < bottom; ++row)
#pragma GCC ivdep
            for (int64_t j = 0; j < columns; ++j) to[row * stride + j] += bias[j];
        });
      if (!act) continue;
      void* z = static_cast<char*>(c) + top * columns * static_cast<int64_t>(size_of(type));
      const void* in = z;
      act->run(&in, z, (bottom - top) * columns);
    }
  });
}

amx::Product by_tiles(const Gemm& g) { return {g.rows, g.inner, g.columns, g.alpha, g.accumulate}; }

bool by_strassen(const Gemm& g) { return !by_tiles(g).wanted() && strassen::wanted(g); }

// Distances of rows in memory.
struct Strides {
  explicit Strides(const Gemm& g)
      : a(g.stride_a > 0  ? g.stride_a
          : g.transpose_a ? g.rows
                          : g.inner),
        b(g.stride_b > 0  ? g.stride_b
          : g.transpose_b ? g.inner
                          : g.columns),
        c(g.stride_c > 0 ? g.stride_c : g.columns) {}
  int64_t a, b, c;
};

// Rows of a and c that are converted at a time: they stay in the last-level cache, and are enough
// for b, which is packed for each of them, not to count.
int64_t converted_rows(const Gemm& g) {
  constexpr int64_t kFloats = 1 << 20, kLeast = 512;
  const int64_t most = std::max(kLeast, kFloats / std::max(g.inner, g.columns));
  return g.rows <= most ? g.rows : piece(g.rows, most, 16);
}

// Columns of a 16-bit result that Strassen's algorithm makes at a time: their sums in f32 stay in
// the last-level cache, and are enough for a, which is packed for each of them, not to count. Whole
// tiles, so that the result is that of all columns at once.
int64_t summed_columns(const Gemm& g) {
  constexpr int64_t kFloats = 1 << 20, kLeast = 1024, kTile = 96;
  const int64_t most = std::max(kLeast, kFloats / g.rows) / kTile * kTile;
  return !is_half(g.type_c) || g.columns <= most ? g.columns : piece(g.columns, most, kTile);
}

// Rows [top, top + n) of an operand a as dense f32, transposed or not as it is.
void widen_rows(const Gemm& g, const void* a, int64_t top, int64_t n, float* to) {
  const auto* from = static_cast<const uint16_t*>(a);
  if (!g.transpose_a) return widen_all(g.type_a, from + top * g.inner, to, n * g.inner);
  parallel_for(g.inner, (1 << 15) / n + 1, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) widen(g.type_a, from + k * g.rows + top, to + k * n, n);
  });
}

// Matrices of f32 side by side, wherever they stand: a dimension whose runs begin at their
// addresses.
class SideBySide {
 public:
  static bool fit(size_t matrices) { return matrices > 1 && matrices <= kMost; }

  template <class T>
  explicit SideBySide(std::span<T* const> matrices) {
    const auto address = [](T* p) { return reinterpret_cast<intptr_t>(p); };
    for (size_t i = 0; i < matrices.size(); ++i)
      starts_[i] =
          (address(matrices[i]) - address(matrices[0])) / static_cast<int64_t>(sizeof(float));
  }
  amx::Axis axis(int64_t stride, int64_t run) const { return {stride, run, 0, starts_}; }

 private:
  static constexpr size_t kMost = 8;
  int64_t starts_[kMost + 1] = {};
};

}  // namespace

void Gemm::prepare() {
  onednn::engine();
  amx::prepare();
  strassen::prepare();
}

int64_t Gemm::scratch(size_t results) const {
  if (is_f32()) return 0;
  if (by_strassen(*this)) {
    const int64_t step = summed_columns(*this);
    return is_half(type_c) ? rows * step * static_cast<int64_t>(step < columns ? 1 : results) : 0;
  }
  const int64_t block = converted_rows(*this);
  return (is_half(type_c) ? block * columns : 0) + (is_half(type_a) ? block * inner : 0) +
         (is_half(type_b) ? inner * columns : 0);
}

void Gemm::run(const void* a, const void* b, void* c, const float* bias, const ElementLoop* act,
               float* scratch) const {
  const Strides row(*this);
  if (by_strassen(*this)) {
    run_strassen({&a, 1}, {&b, 1}, c, bias, scratch);
    bias = nullptr;
  } else if (!is_f32()) {
    run_converted({&a, 1}, {&b, 1}, c, bias, scratch);
    bias = nullptr;
  } else if (const amx::Product tiles = by_tiles(*this); tiles.wanted()) {
    tiles.run({static_cast<const float*>(a), {transpose_a ? 1 : row.a}, {transpose_a ? row.a : 1}},
              {static_cast<const float*>(b), {transpose_b ? row.b : 1}, {transpose_b ? 1 : row.b}},
              {static_cast<float*>(c), {row.c}, {1}}, {bias});
    bias = nullptr;
  } else {
    const dnnl_status_t status =
        dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', rows, columns, inner, alpha,
                   static_cast<const float*>(a), row.a, static_cast<const float*>(b), row.b,
                   accumulate ? 1.0f : 0.0f, static_cast<float*>(c), row.c);
    FLEETX_CHECK(status == dnnl_success, "sgemm failed with status ", status);
  }
  finish(bias, act, c, type_c, rows, columns, row.c);
}

// The sum of the products. A result of 16 bits is made some columns at a time; its sums stay f32
// from one product to the next.
void Gemm::run_strassen(std::span<const void* const> a, std::span<const void* const> b, void* c,
                        const float* bias, float* scratch) const {
  const Strides row(*this);
  const auto column = [](const void* x, int64_t elements, DType type) {
    return static_cast<const char*>(x) + elements * static_cast<int64_t>(size_of(type));
  };
  const int64_t step = summed_columns(*this);
  for (int64_t left = 0; left < columns; left += step) {
    Gemm part = *this;
    part.columns = std::min(step, columns - left);
    for (size_t i = 0; i < a.size(); ++i) {
      const strassen::Columns one{{column(b[i], left * (transpose_b ? row.b : 1), type_b), row.b},
                                  {const_cast<char*>(column(c, left, type_c)), row.c},
                                  bias ? bias + left : nullptr,
                                  scratch,
                                  is_half(type_c) && i > 0 /* begun */,
                                  is_half(type_c) && i + 1 < a.size() /* goes on */};
      strassen::run(part, {a[i], row.a}, {&one, 1});
      if (!is_half(type_c)) part.accumulate = true;
    }
  }
}

// The sum of the products, some rows at a time, with all that has 16 bits converted to f32 before
// and back after it.
void Gemm::run_converted(std::span<const void* const> a, std::span<const void* const> b, void* c,
                         const float* bias, float* scratch) const {
  FLEETX_CHECK(stride_a == 0 && stride_b == 0 && stride_c == 0, "16-bit matrices must be dense");
  const int64_t block = converted_rows(*this);
  const auto room = [&](DType type, int64_t n) {
    return is_half(type) ? std::exchange(scratch, scratch + n) : nullptr;
  };
  float *wide_a = room(type_a, block * inner), *wide_b = room(type_b, inner * columns),
        *wide_c = room(type_c, block * columns);
  const Strides row(*this);
  const auto unit = static_cast<int64_t>(size_of(type_c));
  for (int64_t top = 0; top < rows; top += block) {
    Gemm wide = *this;
    wide.rows = std::min(block, rows - top);
    wide.type_a = wide.type_b = wide.type_c = f32;
    wide.stride_a = wide_a ? 0 : row.a;
    char* part = static_cast<char*>(c) + top * columns * unit;
    if (wide_c && accumulate) widen_all(type_c, part, wide_c, wide.rows * columns);
    for (size_t i = 0; i < a.size(); ++i, wide.accumulate = true) {
      if (wide_a) widen_rows(*this, a[i], top, wide.rows, wide_a);
      if (wide_b && (top == 0 || a.size() > 1)) widen_all(type_b, b[i], wide_b, inner * columns);
      wide.run(wide_a ? wide_a : static_cast<const float*>(a[i]) + top * (transpose_a ? 1 : row.a),
               wide_b ? wide_b : b[i], wide_c ? static_cast<void*>(wide_c) : part, bias);
    }
    if (wide_c) narrow_all(wide_c, type_c, part, wide.rows * columns);
  }
}

void Gemm::run_each(const void* a, std::span<const void* const> b, std::span<void* const> c,
                    std::span<const float* const> bias, const ElementLoop* act,
                    float* scratch) const {
  const Strides row(*this);
  const auto bias_of = [&](size_t i) { return bias.empty() ? nullptr : bias[i]; };
  amx::Product tiles = by_tiles(*this);
  if (is_f32() && tiles.wanted() && columns % 32 == 0 && SideBySide::fit(b.size())) {
    const SideBySide of_b(b), of_c(c), of_bias(bias);
    tiles.columns *= static_cast<int64_t>(b.size());
    tiles.run({static_cast<const float*>(a), {transpose_a ? 1 : row.a}, {transpose_a ? row.a : 1}},
              {static_cast<const float*>(b[0]),
               of_b.axis(transpose_b ? row.b : 1, columns),
               {transpose_b ? 1 : row.b}},
              {static_cast<float*>(c[0]), {row.c}, of_c.axis(1, columns)},
              {bias_of(0), of_bias.axis(1, columns)});
  } else if (by_strassen(*this) && b.size() <= strassen::kMost &&
             summed_columns(*this) == columns) {
    strassen::Columns all[strassen::kMost];
    for (size_t i = 0; i < b.size(); ++i)
      all[i] = {{b[i], row.b},
                {c[i], row.c},
                bias_of(i),
                scratch ? scratch + static_cast<int64_t>(i) * rows * columns : nullptr};
    strassen::run(*this, {a, row.a}, {all, b.size()});
  } else {
    for (size_t i = 0; i < b.size(); ++i) run(a, b[i], c[i], bias_of(i), act, scratch);
    return;
  }
  for (void* result : c) finish(nullptr, act, result, type_c, rows, columns, row.c);
}

void Gemm::run_sum(std::span<const void* const> a, std::span<const void* const> b, void* c,
                   float* scratch) const {
  amx::Product tiles = by_tiles(*this);
  const Strides row(*this);
  if (by_strassen(*this)) {
    run_strassen(a, b, c, nullptr, scratch);
  } else if (!is_f32()) {
    run_converted(a, b, c, nullptr, scratch);
  } else if (!tiles.wanted() || inner % 32 != 0 || !SideBySide::fit(b.size())) {
    Gemm next = *this;
    for (size_t i = 0; i < b.size(); ++i, next.accumulate = true) next.run(a[i], b[i], c);
  } else {
    const SideBySide of_a(a), of_b(b);
    tiles.inner *= static_cast<int64_t>(b.size());
    tiles.run({static_cast<const float*>(a[0]),
               {transpose_a ? 1 : row.a},
               of_a.axis(transpose_a ? row.a : 1, inner)},
              {static_cast<const float*>(b[0]),
               {transpose_b ? row.b : 1},
               of_b.axis(transpose_b ? 1 : row.b, inner)},
              {static_cast<float*>(c), {row.c}, {1}});
  }
}

std::string_view Gemm::implementation() const {
  if (by_strassen(*this)) return "own:strassen";
  if (by_tiles(*this).wanted())
    return is_f32() ? "own:amx_bf16x3" : "own:amx_bf16x3, converted to f32";
  return is_f32() ? "sgemm" : "sgemm, converted to f32";
}

}  // namespace fleetx::ops
