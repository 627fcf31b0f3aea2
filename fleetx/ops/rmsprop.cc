// rmsprop (Hinton's lecture 6):
//   mean_square = rho * mean_square + (1 - rho) * g^2
//   mean_grad = rho * mean_grad + (1 - rho) * g                               (only if centered)
//   moment = momentum * moment + lr * g / sqrt(mean_square - mean_grad^2 + epsilon)
//   p -= moment
// The variance under the root is held at 0 or above: rounding can push it below.
// For g, the lists and sparse gradients see optimizer.h.
#include "fleetx/ops/optimizer.h"

namespace fleetx {
namespace {

struct Base {
  static constexpr bool kPowers = false, kNorms = false;

  Base(const kernel::Prepare& p, size_t)
      : rho(p.attr<float>("rho")),
        epsilon(p.attr<float>("epsilon")),
        momentum(p.attr<float>("momentum")) {}

  float rho, epsilon, momentum;
};

struct Plain : Base {
  using Base::Base;
  static constexpr std::array<std::string_view, 2> kStates{"mean_square", "moment"};

  struct Step {
    float lr, rho, epsilon, momentum;
    void operator()(float& p, float g, float& mean_square, float& moment) const {
      const float square = rho * mean_square + (1 - rho) * g * g;
      const float change = momentum * moment + lr * g / std::sqrt(square + epsilon);
      mean_square = square;
      moment = change;
      p -= change;
    }
  };
  Step step(const ops::StepArgs& a) const { return {a.lr, rho, epsilon, momentum}; }
};

struct Centered : Base {
  using Base::Base;
  static constexpr std::array<std::string_view, 3> kStates{"mean_square", "moment", "mean_grad"};

  struct Step {
    float lr, rho, epsilon, momentum;
    void operator()(float& p, float g, float& mean_square, float& moment, float& mean_grad) const {
      const float square = rho * mean_square + (1 - rho) * g * g;
      const float mean = rho * mean_grad + (1 - rho) * g;
      const float variance = square - mean * mean;
      const float root = std::sqrt((variance > 0 ? variance : 0) + epsilon);
      const float change = momentum * moment + lr * g / root;
      mean_square = square;
      mean_grad = mean;
      moment = change;
      p -= change;
    }
  };
  Step step(const ops::StepArgs& a) const { return {a.lr, rho, epsilon, momentum}; }
};

void infer(ir::Infer& c) {
  ops::infer_update(c);
  ops::check_positive(c, "epsilon");
}

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  if (p.attr<bool>("centered")) return std::make_unique<ops::UpdateKernel<Centered>>(p);
  return std::make_unique<ops::UpdateKernel<Plain>>(p);
}

const ir::RegisterOp register_rmsprop =
    ops::optimizer_op("rmsprop", {"mean_square", "moment", "mean_grad"})
        .attr("rho", 0.95)
        .attr("epsilon", 1e-6)
        .attr("momentum", 0.0)
        .attr("centered", false)
        .infer(infer)
        .kernel(make);

}  // namespace
}  // namespace fleetx
