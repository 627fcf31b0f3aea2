#include "fleetx/ops/lib/gemm.h"

#include <omp.h>

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

// Always by sgemm. It is asked first: the other questions take a part of the time of such a
// product.
bool is_small(const Gemm& g) { return g.rows < 64 || g.columns < 64 || g.inner < 64; }

bool by_strassen(const Gemm& g) {
  return !is_small(g) && !by_tiles(g).wanted() && strassen::wanted(g);
}

// While it lives, oneDNN computes with one thread. For products of microseconds: oneDNN divides
// them between threads with AVX-512, and a second thread would take nothing off them but stay awake
// from one to the next.
class OneThread {
 public:
  explicit OneThread(bool wanted) : before_(wanted ? omp_get_max_threads() : 1) {
    if (before_ > 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ > 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

bool takes_microseconds(const Gemm& g) { return g.rows * g.inner * g.columns < (1 << 18); }

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

// What is converted at a time, so that it stays in the last-level cache.
struct Converted {
  int64_t rows, inner, columns;
};

// Some rows, which are enough for b, which is packed for each of them, not to count. Where all rows
// are few and b is large, a part of b.
Converted converted_at_a_time(const Gemm& g) {
  constexpr int64_t kFloats = 1 << 20, kLeast = 512, kLarge = 1 << 22;
  const auto part = [&](int64_t n, int64_t other) {
    const int64_t most = std::max(kLeast, kFloats / other / 16 * 16);
    return n <= most ? n : piece(n, most, 16);
  };
  Converted all{part(g.rows, std::max(g.inner, g.columns)), g.inner, g.columns};
  if (all.rows < g.rows || !is_half(g.type_b) || g.inner * g.columns < kLarge) return all;
  if (g.columns >= g.inner)
    all.columns = part(g.columns, g.inner);
  else
    all.inner = part(g.inner, g.columns);
  return all;
}

// Columns of a 16-bit result that Strassen's algorithm makes at a time: their sums in f32 stay in
// the last-level cache, and are enough for a, which is packed for each of them, not to count. Whole
// tiles, so that the result is that of all columns at once.
int64_t summed_columns(const Gemm& g) {
  constexpr int64_t kFloats = 1 << 20, kLeast = 1024, kTile = 96;
  const int64_t most = std::max(kLeast, kFloats / g.rows) / kTile * kTile;
  return !is_half(g.type_c) || g.columns <= most ? g.columns : piece(g.columns, most, kTile);
}

// A part of a matrix that stands in memory with rows of `stride` elements.
struct Part {
  int64_t top, left, rows, columns, stride;
  int64_t begin() const { return top * stride + left; }
  bool is_dense() const { return columns == stride; }
};

// 16-bit floats of a part as dense f32, and back.
void widen_part(DType type, const void* x, const Part& p, float* to) {
  const auto* from = static_cast<const uint16_t*>(x) + p.begin();
  if (p.is_dense()) return widen_all(type, from, to, p.rows * p.columns);
  parallel_for(p.rows, (1 << 15) / p.columns + 1, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      widen(type, from + r * p.stride, to + r * p.columns, p.columns);
  });
}
void narrow_part(const float* from, DType type, void* x, const Part& p) {
  auto* to = static_cast<uint16_t*>(x) + p.begin();
  if (p.is_dense()) return narrow_all(from, type, to, p.rows * p.columns);
  parallel_for(p.rows, (1 << 15) / p.columns + 1, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      narrow(from + r * p.columns, type, to + r * p.stride, p.columns);
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
  const Converted at_a_time = converted_at_a_time(*this);
  return (is_half(type_c) ? at_a_time.rows * at_a_time.columns : 0) +
         (is_half(type_a) ? at_a_time.rows * at_a_time.inner : 0) +
         (is_half(type_b) ? at_a_time.inner * at_a_time.columns : 0);
}

void Gemm::run(const void* a, const void* b, void* c, const float* bias, const ElementLoop* act,
               float* scratch) const {
  const Strides row(*this);
  const bool small = is_small(*this);
  if (!small && by_strassen(*this)) {
    run_strassen({&a, 1}, {&b, 1}, c, bias, scratch);
    bias = nullptr;
  } else if (!is_f32()) {
    run_converted({&a, 1}, {&b, 1}, c, bias, scratch);
    bias = nullptr;
  } else if (const amx::Product tiles = by_tiles(*this); !small && tiles.wanted()) {
    tiles.run({static_cast<const float*>(a), {transpose_a ? 1 : row.a}, {transpose_a ? row.a : 1}},
              {static_cast<const float*>(b), {transpose_b ? row.b : 1}, {transpose_b ? 1 : row.b}},
              {static_cast<float*>(c), {row.c}, {1}}, {bias});
    bias = nullptr;
  } else {
    const OneThread one(small && takes_microseconds(*this));
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

// The sum of the products, a part at a time, with all that has 16 bits converted to f32 before and
// back after it.
void Gemm::run_converted(std::span<const void* const> a, std::span<const void* const> b, void* c,
                         const float* bias, float* scratch) const {
  FLEETX_CHECK(stride_a == 0 && stride_b == 0 && stride_c == 0, "16-bit matrices must be dense");
  const Converted step = converted_at_a_time(*this);
  const auto room = [&](DType type, int64_t n) {
    return is_half(type) ? std::exchange(scratch, scratch + n) : nullptr;
  };
  float *wide_a = room(type_a, step.rows * step.inner),
        *wide_b = room(type_b, step.inner * step.columns),
        *wide_c = room(type_c, step.rows * step.columns);
  const Strides row(*this);
  // Then what was converted for a part serves those beside and below it, too.
  const bool one = a.size() == 1 && step.inner == inner;
  for (int64_t top = 0; top < rows; top += step.rows)
    for (int64_t left = 0; left < columns; left += step.columns) {
      Gemm wide = *this;
      wide.rows = std::min(step.rows, rows - top);
      wide.columns = std::min(step.columns, columns - left);
      wide.type_a = wide.type_b = wide.type_c = f32;
      wide.stride_a = wide_a ? 0 : row.a;
      wide.stride_b = wide_b ? 0 : row.b;
      wide.stride_c = wide_c ? 0 : row.c;
      const Part of_c{top, left, wide.rows, wide.columns, columns};
      if (wide_c && accumulate) widen_part(type_c, c, of_c, wide_c);
      float* to = wide_c ? wide_c : static_cast<float*>(c) + of_c.begin();
      for (size_t i = 0; i < a.size(); ++i)
        for (int64_t first = 0; first < inner; first += step.inner, wide.accumulate = true) {
          wide.inner = std::min(step.inner, inner - first);
          const Part of_a = transpose_a ? Part{first, top, wide.inner, wide.rows, row.a}
                                        : Part{top, first, wide.rows, wide.inner, row.a};
          const Part of_b = transpose_b ? Part{left, first, wide.columns, wide.inner, row.b}
                                        : Part{first, left, wide.inner, wide.columns, row.b};
          if (wide_a && (left == 0 || !one)) widen_part(type_a, a[i], of_a, wide_a);
          if (wide_b && (top == 0 || !one)) widen_part(type_b, b[i], of_b, wide_b);
          const bool ends = first + wide.inner == inner;
          wide.run(wide_a ? wide_a : static_cast<const float*>(a[i]) + of_a.begin(),
                   wide_b ? wide_b : static_cast<const float*>(b[i]) + of_b.begin(), to,
                   bias && ends ? bias + left : nullptr);
        }
      if (wide_c) narrow_part(wide_c, type_c, c, of_c);
    }
}

void Gemm::run_each(const void* a, std::span<const void* const> b, std::span<void* const> c,
                    std::span<const float* const> bias, const ElementLoop* act,
                    float* scratch) const {
  const auto bias_of = [&](size_t i) { return bias.empty() ? nullptr : bias[i]; };
  const auto one_by_one = [&] {
    for (size_t i = 0; i < b.size(); ++i) run(a, b[i], c[i], bias_of(i), act, scratch);
  };
  if (is_small(*this)) return one_by_one();
  const Strides row(*this);
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
    return one_by_one();
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
  } else if (is_small(*this) || !tiles.wanted() || inner % 32 != 0 || !SideBySide::fit(b.size())) {
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
