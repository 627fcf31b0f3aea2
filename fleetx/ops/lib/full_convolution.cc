#include "fleetx/ops/lib/full_convolution.h"

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"

namespace fleetx::ops {
namespace {

Gemm product(ConvPass pass, int64_t images, int64_t values, int64_t outputs) {
  switch (pass) {
    case ConvPass::kForward: return {images, values, outputs, false, true};
    case ConvPass::kData: return {images, outputs, values};
    case ConvPass::kWeights: return {outputs, images, values, true};
  }
  return {};
}

}  // namespace

bool FullConvolution::wanted(const Convolution& c) {
  const ir::Ints none{0, 0};
  // A kernel of 1x1 on an image of 1x1 is served well by oneDNN, in any layout.
  return c.groups == 1 && c.pad_before == none && c.pad_after == none && c.weights[2] == c.src[2] &&
         c.weights[3] == c.src[3] && c.weights.numel(2, 4) > 1;
}

FullConvolution::FullConvolution(kernel::Prepare& p, ConvPass pass, const Convolution& c,
                                 const ConvOptions& options)
    : pass_(pass),
      relu_(options.relu),
      results_(c.dst.numel()),
      gemm_(product(pass, c.src[0], c.src.numel(1, 4), c.dst[1])) {
  gemm_.definition = p.skips().strassen;
  Gemm::prepare();
}

void FullConvolution::run(const kernel::Run& r) const {
  switch (pass_) {
    case ConvPass::kForward: {
      float* out = r.out<float>(dst_);
      gemm_.run(r.in<float>(src_), r.in<float>(weights_), out, r.in<float>(bias_));
      if (!relu_) return;
      parallel_for(results_, 1 << 15, [=](int64_t begin, int64_t end) {
        vectorized([=] {
          for (int64_t i = begin; i < end; ++i) out[i] = out[i] < 0 ? 0.0f : out[i];
        });
      });
      return;
    }
    case ConvPass::kData:
      return gemm_.run(r.in<float>(dst_), r.in<float>(weights_), r.out<float>(src_));
    case ConvPass::kWeights:
      return gemm_.run(r.in<float>(dst_), r.in<float>(src_), r.out<float>(weights_));
  }
}

}  // namespace fleetx::ops
