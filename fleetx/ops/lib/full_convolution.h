// Convolutions whose kernel covers the image: one place in the result, so each computation is one
// product of matrices, with K the values of an image (channels, height, width):
//
//   forward  out [N, O] = x [N, K] * w^T [K, O]
//   data     dx  [N, K] = dout [N, O] * w [O, K]
//   weights  dw  [O, K] = dout^T [O, N] * x [N, K]
//
// oneDNN makes the last of them image by image, and reads and writes all of dw each time.
#pragma once

#include "fleetx/ops/lib/gemm.h"
#include "fleetx/ops/lib/own_convolution.h"

namespace fleetx::ops {

class FullConvolution final : public OwnConvolution {
 public:
  static bool wanted(const Convolution& c);

  FullConvolution(kernel::Prepare& p, ConvPass pass, const Convolution& c,
                  const ConvOptions& options);
  void run(const kernel::Run& r) const override;

 private:
  ConvPass pass_;
  bool relu_;
  int64_t results_;  // of forward
  Gemm gemm_;
};

}  // namespace fleetx::ops
