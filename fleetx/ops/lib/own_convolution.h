// Convolutions for which code of our own is faster than oneDNN's.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "fleetx/ops/lib/convolution.h"

namespace fleetx::ops {

// One of the three computations.
class OwnConvolution {
 public:
  virtual ~OwnConvolution() = default;
  // src, weights and dst of the convolution, whichever of them is the result.
  void bind(kernel::Slot src, kernel::Slot weights, kernel::Slot dst, kernel::Slot bias = {}) {
    src_ = src;
    weights_ = weights;
    dst_ = dst;
    bias_ = bias;
  }
  virtual void run(const kernel::Run& r) const = 0;

 protected:
  kernel::Slot src_, weights_, dst_, bias_;
};

// An algorithm for all three. Of the options it knows bias and relu.
struct ConvAlgorithm {
  std::string_view name;
  Layout activations, weights;
  std::unique_ptr<OwnConvolution> (*make)(kernel::Prepare& p, ConvPass pass, const Convolution& c,
                                          const ConvOptions& options);
};

// The algorithm for these computations, kForward or some of the others; null where oneDNN is
// faster.
const ConvAlgorithm* own_algorithm(const kernel::Prepare& p, std::span<const ConvPass> passes,
                                   const Convolution& c);

// The one of plane_convolution.h, where it is expected to take less than two thirds of the time
// that oneDNN takes.
const ConvAlgorithm* plane_algorithm(const kernel::Prepare& p, std::span<const ConvPass> passes,
                                     const Convolution& c);

}  // namespace fleetx::ops
