// adamax (Kingma and Ba, 2015):
//   m = beta1 * m + (1 - beta1) * g
//   u = max(beta2 * u, |g|)
//   p -= lr / (1 - beta1_pow) * m / (u + epsilon)
// The powers are as in adam.cc. epsilon is not part of u, so that what pads a layout stays zero.
// For g, the lists and sparse gradients see optimizer.h.
#include "fleetx/ops/optimizer.h"

namespace fleetx {
namespace {

struct Adamax {
  static constexpr std::array<std::string_view, 2> kStates{"moment", "inf_norm"};
  static constexpr bool kPowers = true, kNorms = false;

  Adamax(const kernel::Prepare& p, size_t)
      : beta1(p.attr<float>("beta1")),
        beta2(p.attr<float>("beta2")),
        epsilon(p.attr<float>("epsilon")) {}

  struct Step {
    float beta1, beta2, lr, epsilon;
    void operator()(float& p, float g, float& moment, float& inf_norm) const {
      const float m = beta1 * moment + (1 - beta1) * g;
      const float old = beta2 * inf_norm, now = g < 0 ? -g : g;
      const float u = now > old ? now : old;
      moment = m;
      inf_norm = u;
      p -= lr * m / (u + epsilon);
    }
  };
  Step step(const ops::StepArgs& a) const {
    return {beta1, beta2, static_cast<float>(a.lr / (1.0 - static_cast<double>(a.beta1_pow))),
            epsilon};
  }

  float beta1, beta2, epsilon;
};

void infer(ir::Infer& c) {
  ops::infer_update(c);
  ops::check_positive(c, "epsilon");
}

const ir::RegisterOp register_adamax =
    ops::optimizer_op("adamax", {"moment", "inf_norm", "beta1_pow", "beta2_pow"})
        .attr("beta1", 0.9)
        .attr("beta2", 0.999)
        .attr("epsilon", 1e-8)
        .infer(infer)
        .kernel<ops::UpdateKernel<Adamax>>();

}  // namespace
}  // namespace fleetx
