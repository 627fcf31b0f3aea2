#include "fleetx/ops/lib/gemm.h"

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/gemm_amx.h"
#include "fleetx/ops/lib/gemm_strassen.h"
#include "fleetx/ops/lib/onednn.h"

namespace fleetx::ops {
namespace {

// Adds the bias and applies the activation, to a few rows at a time, which stay in the first-level
// cache.
void finish(const float* bias, const ElementLoop* act, float* c, int64_t rows, int64_t columns,
            int64_t stride) {
  if (!bias && !act) return;
  parallel_for(rows, (1 << 15) / columns + 1, [=](int64_t begin, int64_t end) {
    const int64_t step = (1 << 13) / columns + 1;
    for (int64_t top = begin; top < end; top += step) {
      const int64_t bottom = std::min(top + step, end);
      if (bias)
        vectorized([=] {
          for (int64_t row = top; row < bottom; ++row)
#pragma GCC ivdep
            for (int64_t j = 0; j < columns; ++j) c[row * stride + j] += bias[j];
        });
      if (!act) continue;
      const void* z = c + top * columns;
      act->run(&z, c + top * columns, (bottom - top) * columns);
    }
  });
}

amx::Product by_tiles(const Gemm& g) { return {g.rows, g.inner, g.columns, g.alpha, g.accumulate}; }

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

// Matrices side by side, wherever they stand: a dimension whose runs begin at their addresses.
class SideBySide {
 public:
  static bool fit(size_t matrices) { return matrices > 1 && matrices <= kMost; }

  template <class T>
  explicit SideBySide(std::span<T* const> matrices) {
    const auto address = [](T* p) { return reinterpret_cast<intptr_t>(p); };
    for (size_t i = 0; i < matrices.size(); ++i)
      starts_[i] = (address(matrices[i]) - address(matrices[0])) / static_cast<int64_t>(sizeof(T));
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

void Gemm::run(const float* a, const float* b, float* c, const float* bias,
               const ElementLoop* act) const {
  const Strides row(*this);
  if (const amx::Product tiles = by_tiles(*this); tiles.wanted()) {
    tiles.run({a, {transpose_a ? 1 : row.a}, {transpose_a ? row.a : 1}},
              {b, {transpose_b ? row.b : 1}, {transpose_b ? 1 : row.b}}, {c, {row.c}, {1}}, {bias});
    bias = nullptr;
  } else if (strassen::wanted(*this)) {
    const strassen::Columns all{{b, row.b}, {c, row.c}, bias};
    strassen::run(*this, {a, row.a}, {&all, 1});
    bias = nullptr;
  } else {
    const dnnl_status_t status =
        dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', rows, columns, inner, alpha, a,
                   row.a, b, row.b, accumulate ? 1.0f : 0.0f, c, row.c);
    FLEETX_CHECK(status == dnnl_success, "sgemm failed with status ", status);
  }
  finish(bias, act, c, rows, columns, row.c);
}

void Gemm::run_each(const float* a, std::span<const float* const> b, std::span<float* const> c,
                    std::span<const float* const> bias, const ElementLoop* act) const {
  const Strides row(*this);
  const auto bias_of = [&](size_t i) { return bias.empty() ? nullptr : bias[i]; };
  amx::Product tiles = by_tiles(*this);
  if (tiles.wanted() && columns % 32 == 0 && SideBySide::fit(b.size())) {
    const SideBySide of_b(b), of_c(c), of_bias(bias);
    tiles.columns *= static_cast<int64_t>(b.size());
    tiles.run({a, {transpose_a ? 1 : row.a}, {transpose_a ? row.a : 1}},
              {b[0], of_b.axis(transpose_b ? row.b : 1, columns), {transpose_b ? 1 : row.b}},
              {c[0], {row.c}, of_c.axis(1, columns)}, {bias_of(0), of_bias.axis(1, columns)});
  } else if (!tiles.wanted() && strassen::wanted(*this) && b.size() <= strassen::kMost) {
    strassen::Columns all[strassen::kMost];
    for (size_t i = 0; i < b.size(); ++i) all[i] = {{b[i], row.b}, {c[i], row.c}, bias_of(i)};
    strassen::run(*this, {a, row.a}, {all, b.size()});
  } else {
    for (size_t i = 0; i < b.size(); ++i) run(a, b[i], c[i], bias_of(i), act);
    return;
  }
  for (float* result : c) finish(nullptr, act, result, rows, columns, row.c);
}

void Gemm::run_sum(std::span<const float* const> a, std::span<const float* const> b,
                   float* c) const {
  amx::Product tiles = by_tiles(*this);
  if (!tiles.wanted() || inner % 32 != 0 || !SideBySide::fit(b.size())) {
    Gemm next = *this;
    for (size_t i = 0; i < b.size(); ++i, next.accumulate = true) next.run(a[i], b[i], c);
    return;
  }
  const Strides row(*this);
  const SideBySide of_a(a), of_b(b);
  tiles.inner *= static_cast<int64_t>(b.size());
  tiles.run({a[0], {transpose_a ? 1 : row.a}, of_a.axis(transpose_a ? row.a : 1, inner)},
            {b[0], {transpose_b ? row.b : 1}, of_b.axis(transpose_b ? 1 : row.b, inner)},
            {c, {row.c}, {1}});
}

std::string_view Gemm::implementation() const {
  return by_tiles(*this).wanted()  ? "own:amx_bf16x3"
         : strassen::wanted(*this) ? "own:strassen"
                                   : "sgemm";
}

}  // namespace fleetx::ops
