// adadelta (Zeiler, 2012):
//   avg_squared_grad = rho * avg_squared_grad + (1 - rho) * g^2
//   d = sqrt((avg_squared_update + epsilon) / (avg_squared_grad + epsilon)) * g
//   avg_squared_update = rho * avg_squared_update + (1 - rho) * d^2
//   p -= lr * d
// The paper has lr = 1. For g, the lists and sparse gradients see optimizer.h.
#include "fleetx/ops/optimizer.h"

namespace fleetx {
namespace {

struct Adadelta {
  static constexpr std::array<std::string_view, 2> kStates{"avg_squared_grad",
                                                           "avg_squared_update"};
  static constexpr bool kPowers = false, kNorms = false;

  Adadelta(const kernel::Prepare& p, size_t)
      : rho(p.attr<float>("rho")), epsilon(p.attr<float>("epsilon")) {}

  struct Step {
    float lr, rho, epsilon;
    void operator()(float& p, float g, float& avg_grad, float& avg_update) const {
      const float grad2 = rho * avg_grad + (1 - rho) * g * g;
      const float d = std::sqrt((avg_update + epsilon) / (grad2 + epsilon)) * g;
      avg_grad = grad2;
      avg_update = rho * avg_update + (1 - rho) * d * d;
      p -= lr * d;
    }
  };
  Step step(const ops::StepArgs& a) const { return {a.lr, rho, epsilon}; }

  float rho, epsilon;
};

void infer(ir::Infer& c) {
  ops::infer_update(c);
  ops::check_positive(c, "epsilon");
}

const ir::RegisterOp register_adadelta =
    ops::optimizer_op("adadelta", {"avg_squared_grad", "avg_squared_update"})
        .attr("rho", 0.95)
        .attr("epsilon", 1e-6)
        .infer(infer)
        .kernel<ops::UpdateKernel<Adadelta>>();

}  // namespace
}  // namespace fleetx
