#include "fleetx/ops/gemm.h"

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/gemm_amx.h"
#include "fleetx/ops/gemm_strassen.h"
#include "fleetx/ops/onednn.h"

namespace fleetx {
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

}  // namespace

void Gemm::prepare() {
  onednn::engine();
  amx::prepare();
  strassen::prepare();
}

void Gemm::run(const float* a, const float* b, float* c, const float* bias,
               const ElementLoop* act) const {
  const auto stride = [](int64_t given, int64_t dense) { return given > 0 ? given : dense; };
  const int64_t row_a = stride(stride_a, transpose_a ? rows : inner),
                row_b = stride(stride_b, transpose_b ? inner : columns),
                row_c = stride(stride_c, columns);
  if (const amx::Product tiles = by_tiles(*this); tiles.wanted()) {
    tiles.run({a, {transpose_a ? 1 : row_a}, {transpose_a ? row_a : 1}},
              {b, {transpose_b ? row_b : 1}, {transpose_b ? 1 : row_b}}, {c, {row_c}, {1}}, bias);
    bias = nullptr;
  } else if (strassen::wanted(*this)) {
    strassen::run(*this, {a, row_a}, {b, row_b}, {c, row_c}, bias);
    bias = nullptr;
  } else {
    const dnnl_status_t status =
        dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', rows, columns, inner, alpha, a,
                   row_a, b, row_b, accumulate ? 1.0f : 0.0f, c, row_c);
    FLEETX_CHECK(status == dnnl_success, "sgemm failed with status ", status);
  }
  finish(bias, act, c, rows, columns, row_c);
}

void Gemm::run_each(const float* a, std::span<const float* const> b, std::span<float* const> c,
                    std::span<const float* const> bias, const ElementLoop* act) const {
  for (size_t i = 0; i < b.size(); ++i) run(a, b[i], c[i], bias.empty() ? nullptr : bias[i], act);
}

void Gemm::run_sum(std::span<const float* const> a, std::span<const float* const> b,
                   float* c) const {
  Gemm next = *this;
  for (size_t i = 0; i < b.size(); ++i, next.accumulate = true) next.run(a[i], b[i], c);
}

std::string_view Gemm::implementation() const {
  return by_tiles(*this).wanted()  ? "own:amx_bf16x3"
         : strassen::wanted(*this) ? "own:strassen"
                                   : "sgemm";
}

}  // namespace fleetx
