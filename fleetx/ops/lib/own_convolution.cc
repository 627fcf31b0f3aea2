#include "fleetx/ops/lib/own_convolution.h"

#include "fleetx/ops/lib/full_convolution.h"
#include "fleetx/ops/lib/plane_convolution.h"
#include "fleetx/ops/lib/pointwise.h"
#include "fleetx/ops/lib/winograd.h"

namespace fleetx::ops {
namespace {

template <class Own>
std::unique_ptr<OwnConvolution> make(kernel::Prepare& p, ConvPass pass, const Convolution& c,
                                     const ConvOptions& options) {
  return std::make_unique<Own>(p, pass, c, options);
}

// Measured like share_of_peak: what the products reach, and flops in the time of copying a value.
double plane_share(ConvPass pass, const Convolution& c) {
  constexpr double kProducts = 0.45, kCopy = 20;
  const double flops = c.flops();
  return flops / (flops * PlaneConvolution::waste(pass, c) / kProducts +
                  kCopy * PlaneConvolution::copied(c));
}

}  // namespace

const ConvAlgorithm* plane_algorithm(const kernel::Prepare& p, std::span<const ConvPass> passes,
                                     const Convolution& c) {
  constexpr int64_t kFew = 15;
  static const ConvAlgorithm planes{"own:planes", Layout::plain(), Layout::plain(),
                                    make<PlaneConvolution>};
  if (p.skips().layout || std::min(c.src[1], c.dst[1]) / c.groups > kFew || c.dst.numel() == 0)
    return nullptr;
  double own = 0, onednn = 0;
  for (const ConvPass pass : passes) {
    own += 1 / plane_share(pass, c);
    onednn += 1 / choose(p, pass, c, {{}}).share;
  }
  return 1.5 * own < onednn ? &planes : nullptr;
}

const ConvAlgorithm* own_algorithm(const kernel::Prepare& p, std::span<const ConvPass> passes,
                                   const Convolution& c) {
  // nChw8c and OIhw8i8o; nChw16c and row-major.
  static const ConvAlgorithm winograd{
      "own:wino_4x3",
      {{0, 1, 2, 3}, {{1, Winograd::kBlock}}},
      {{0, 1, 2, 3}, {{1, Winograd::kBlock}, {0, Winograd::kBlock}}},
      make<Winograd>};
  static const ConvAlgorithm pointwise{
      "own:amx_1x1", {{0, 1, 2, 3}, {{1, Pointwise::kBlock}}}, Layout::plain(), make<Pointwise>};
  static const ConvAlgorithm full{"own:gemm", Layout::plain(), Layout::plain(),
                                  make<FullConvolution>};
  if (p.skips().layout) return nullptr;
  if (Pointwise::wanted(c)) return &pointwise;
  if (FullConvolution::wanted(c)) return &full;
  // Both gradients take one algorithm, that of the weights.
  const bool forward = passes.front() == ConvPass::kForward;
  if (!p.skips().winograd && Winograd::wanted(forward ? ConvPass::kForward : ConvPass::kWeights, c))
    return &winograd;
  return plane_algorithm(p, passes, c);
}

}  // namespace fleetx::ops
