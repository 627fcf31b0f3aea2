// momentum: v = mu * v + g;  p -= lr * v, or with nesterov p -= lr * (g + mu * v).
// For g, the lists and sparse gradients see optimizer.h.
#include "fleetx/ops/optimizer.h"

namespace fleetx {
namespace {

struct Momentum {
  static constexpr std::array<std::string_view, 1> kStates{"velocity"};
  static constexpr bool kPowers = false, kNorms = false;

  Momentum(const kernel::Prepare& p, size_t)
      : mu(p.attr<float>("mu")), nesterov(p.attr<bool>("nesterov")) {}

  // p -= lr_v * v + lr_g * g covers both forms.
  struct Step {
    float mu, lr_v, lr_g;
    void operator()(float& p, float g, float& velocity) const {
      const float v = mu * velocity + g;
      velocity = v;
      p -= lr_v * v + lr_g * g;
    }
  };
  Step step(const ops::StepArgs& a) const {
    return nesterov ? Step{mu, a.lr * mu, a.lr} : Step{mu, a.lr, 0.0f};
  }

  float mu;
  bool nesterov;
};

const ir::RegisterOp register_momentum = ops::optimizer_op("momentum", {"velocity"})
                                             .attr("mu", 0.9)
                                             .attr("nesterov", false)
                                             .kernel<ops::UpdateKernel<Momentum>>();

}  // namespace
}  // namespace fleetx
