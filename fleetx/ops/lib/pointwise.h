// Convolutions of 1x1 by products of tiles (gemm_amx.h). With activations in nChw16c the channels
// of a place are one row of a matrix, cut in pieces of 16 that stand apart, and places of an image
// follow each other, so nothing is moved before or after the product:
//
//   forward  out [places, O] = x [places, C] * w^T [C, O]
//   data     dx  [places, C] = dout [places, O] * w [O, C]
//   weights  dw  [O, C] = dout^T [O, places] * x [places, C]
#pragma once

#include "fleetx/ops/lib/gemm_amx.h"
#include "fleetx/ops/lib/own_convolution.h"

namespace fleetx::ops {

class Pointwise final : public OwnConvolution {
 public:
  static constexpr int64_t kBlock = 16;
  static bool wanted(const Convolution& c);

  Pointwise(kernel::Prepare& p, ConvPass pass, const Convolution& c, const ConvOptions& options);
  void run(const kernel::Run& r) const override;

 private:
  ConvPass pass_;
  bool relu_;
  int64_t inputs_, outputs_, places_;  // channels of src and dst, places of an image
  amx::Product product_;
};

}  // namespace fleetx::ops
