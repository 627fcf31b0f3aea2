#include "fleetx/ops/gemm.h"

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/gemm_amx.h"
#include "fleetx/ops/onednn.h"

namespace fleetx {
namespace {

void add_to_rows(const float* bias, float* c, int64_t rows, int64_t columns, int64_t stride) {
  parallel_for(rows, (1 << 15) / columns + 1, [=](int64_t begin, int64_t end) {
    vectorized([=] {
      for (int64_t row = begin; row < end; ++row)
#pragma GCC ivdep
        for (int64_t j = 0; j < columns; ++j) c[row * stride + j] += bias[j];
    });
  });
}

}  // namespace

void Gemm::prepare() {
  onednn::engine();
  amx::prepare();
}

void Gemm::run(const float* a, const float* b, float* c, const float* bias) const {
  if (amx::wanted(*this)) return amx::run(*this, a, b, c, bias);
  const auto stride = [](int64_t given, int64_t dense) { return given > 0 ? given : dense; };
  const dnnl_status_t status =
      dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', rows, columns, inner, alpha, a,
                 stride(stride_a, transpose_a ? rows : inner), b,
                 stride(stride_b, transpose_b ? inner : columns), accumulate ? 1.0f : 0.0f, c,
                 stride(stride_c, columns));
  FLEETX_CHECK(status == dnnl_success, "sgemm failed with status ", status);
  if (bias) add_to_rows(bias, c, rows, columns, stride(stride_c, columns));
}

std::string_view Gemm::implementation() const {
  return amx::wanted(*this) ? "own:amx_bf16x3" : "sgemm";
}

}  // namespace fleetx
