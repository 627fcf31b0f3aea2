// sgd: p -= lr * g. For g, the lists and sparse gradients see optimizer.h.
#include "fleetx/ops/optimizer.h"

namespace fleetx {
namespace {

struct Sgd {
  static constexpr std::array<std::string_view, 0> kStates{};
  static constexpr bool kPowers = false, kNorms = false;

  Sgd(const kernel::Prepare&, size_t) {}

  struct Step {
    float lr;
    void operator()(float& p, float g) const { p -= lr * g; }
  };
  Step step(const ops::StepArgs& a) const { return {a.lr}; }
};

const ir::RegisterOp register_sgd = ops::optimizer_op("sgd", {}).kernel<ops::UpdateKernel<Sgd>>();

}  // namespace
}  // namespace fleetx
