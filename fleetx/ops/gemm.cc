#include "fleetx/ops/gemm.h"

#include "fleetx/ops/gemm_amx.h"
#include "fleetx/ops/onednn.h"

namespace fleetx {

void Gemm::prepare() {
  onednn::engine();
  amx::prepare();
}

void Gemm::run(const float* a, const float* b, float* c) const {
  if (amx::wanted(*this)) return amx::run(*this, a, b, c);
  const auto stride = [](int64_t given, int64_t dense) { return given > 0 ? given : dense; };
  const dnnl_status_t status =
      dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', rows, columns, inner, alpha, a,
                 stride(stride_a, transpose_a ? rows : inner), b,
                 stride(stride_b, transpose_b ? inner : columns), accumulate ? 1.0f : 0.0f, c,
                 stride(stride_c, columns));
  FLEETX_CHECK(status == dnnl_success, "sgemm failed with status ", status);
}

std::string_view Gemm::implementation() const {
  return amx::wanted(*this) ? "own:amx_bf16x3" : "sgemm";
}

}  // namespace fleetx
