#include "fleetx/ops/own_convolution.h"

#include "fleetx/ops/pointwise.h"
#include "fleetx/ops/winograd.h"

namespace fleetx {
namespace {

template <class Own>
std::unique_ptr<OwnConvolution> make(kernel::Prepare& p, ConvPass pass, const Convolution& c,
                                     const ConvOptions& options) {
  return std::make_unique<Own>(p, pass, c, options);
}

}  // namespace

const OwnWay* own_way(const kernel::Prepare& p, ConvPass pass, const Convolution& c) {
  // nChw8c and OIhw8i8o; nChw16c and row-major.
  static const OwnWay winograd{"own:wino_4x3",
                               {{0, 1, 2, 3}, {{1, Winograd::kBlock}}},
                               {{0, 1, 2, 3}, {{1, Winograd::kBlock}, {0, Winograd::kBlock}}},
                               make<Winograd>};
  static const OwnWay pointwise{
      "own:amx_1x1", {{0, 1, 2, 3}, {{1, Pointwise::kBlock}}}, Layout::plain(), make<Pointwise>};
  if (p.without().layout) return nullptr;
  if (Pointwise::wanted(c)) return &pointwise;
  return !p.without().winograd && Winograd::wanted(pass, c) ? &winograd : nullptr;
}

}  // namespace fleetx
