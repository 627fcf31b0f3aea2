// adam (Kingma and Ba, 2015):
//   m1 = beta1 * m1 + (1 - beta1) * g
//   m2 = beta2 * m2 + (1 - beta2) * g^2
//   p -= lr * (m1 / (1 - beta1_pow)) / (sqrt(m2 / (1 - beta2_pow)) + epsilon)
// beta1_pow and beta2_pow, one pair per parameter, start at beta1 and beta2 and are multiplied by
// them after each step.
// adamw (Loshchilov and Hutter, 2019): the same after p *= 1 - lr * coeff, for parameters whose
// with_decay is not 0.
// For g, the lists and sparse gradients see optimizer.h.
#include "fleetx/ops/optimizer.h"

namespace fleetx {
namespace {

struct Adam {
  static constexpr std::array<std::string_view, 2> kStates{"moment1", "moment2"};
  static constexpr bool kPowers = true, kNorms = false;

  Adam(const kernel::Prepare& p, size_t)
      : beta1(p.attr<float>("beta1")),
        beta2(p.attr<float>("beta2")),
        epsilon(p.attr<double>("epsilon")) {}

  struct Step {
    float beta1, beta2, lr, epsilon, keep;
    void operator()(float& p, float g, float& moment1, float& moment2) const {
      const float m1 = beta1 * moment1 + (1 - beta1) * g;
      const float m2 = beta2 * moment2 + (1 - beta2) * g * g;
      moment1 = m1;
      moment2 = m2;
      p = keep * p - lr * (m1 / (std::sqrt(m2) + epsilon));
    }
  };
  // Both corrections are folded into lr and epsilon, so that an element costs one root and one
  // division.
  Step step(const ops::StepArgs& a) const {
    const double root = std::sqrt(1.0 - static_cast<double>(a.beta2_pow));
    const double lr = a.lr * root / (1.0 - static_cast<double>(a.beta1_pow));
    return {beta1, beta2, static_cast<float>(lr), static_cast<float>(epsilon * root),
            static_cast<float>(1.0 - a.lr * coeff)};
  }

  float beta1, beta2;
  double epsilon, coeff = 0;
};

struct AdamW : Adam {
  AdamW(const kernel::Prepare& p, size_t i) : Adam(p, i) {
    coeff = ops::per_parameter(p, "with_decay", i, 1.0) != 0 ? p.attr<double>("coeff") : 0.0;
  }
};

void infer(ir::Infer& c) {
  ops::infer_update(c);
  ops::check_positive(c, "epsilon");
}

const std::vector<std::string> kSlots = {"moment1", "moment2", "beta1_pow", "beta2_pow"};

const ir::RegisterOp register_adam = ops::optimizer_op("adam", kSlots)
                                         .attr("beta1", 0.9)
                                         .attr("beta2", 0.999)
                                         .attr("epsilon", 1e-8)
                                         .infer(infer)
                                         .kernel<ops::UpdateKernel<Adam>>();
const ir::RegisterOp register_adamw = ops::optimizer_op("adamw", kSlots)
                                          .attr("beta1", 0.9)
                                          .attr("beta2", 0.999)
                                          .attr("epsilon", 1e-8)
                                          .attr("coeff", 0.01)
                                          .attr("with_decay", ir::Floats{})
                                          .infer(infer)
                                          .kernel<ops::UpdateKernel<AdamW>>();

}  // namespace
}  // namespace fleetx
