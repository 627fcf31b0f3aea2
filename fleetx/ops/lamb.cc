// lamb (You et al., 2020): adam's step r, scaled per parameter by |p| / |r|.
//   m1 = beta1 * m1 + (1 - beta1) * g;   m2 = beta2 * m2 + (1 - beta2) * g^2
//   r = (m1 / (1 - beta1_pow)) / (sqrt(m2 / (1 - beta2_pow)) + epsilon) + wd * p
//   p -= lr * |p| / |r| * r,  the factor is 1 if either norm is 0
// wd is weight_decay, or 0 where with_decay is 0. Dense gradients only.
// The first pass updates the moments and takes the norms, the second computes r again from them.
// For g, the powers and the lists see adam.cc and optimizer.h.
#include "fleetx/ops/optimizer.h"

namespace fleetx {
namespace {

struct Lamb {
  static constexpr std::array<std::string_view, 2> kStates{"moment1", "moment2"};
  static constexpr bool kPowers = true, kNorms = true;

  Lamb(const kernel::Prepare& p, size_t i)
      : beta1(p.attr<float>("beta1")),
        beta2(p.attr<float>("beta2")),
        epsilon(p.attr<float>("epsilon")),
        decay(ops::per_parameter(p, "with_decay", i, 1.0) != 0 ? p.attr<float>("weight_decay")
                                                               : 0.0f) {}

  struct Direction {
    float correct1, correct2, epsilon, decay;
    float operator()(float p, float m1, float m2) const {
      return m1 * correct1 / (std::sqrt(m2 * correct2) + epsilon) + decay * p;
    }
  };
  Direction direction(const ops::StepArgs& a) const {
    return {static_cast<float>(1.0 / (1.0 - static_cast<double>(a.beta1_pow))),
            static_cast<float>(1.0 / (1.0 - static_cast<double>(a.beta2_pow))), epsilon, decay};
  }

  struct Measure {
    float beta1, beta2;
    Direction direction;
    float operator()(float p, float g, float& moment1, float& moment2) const {
      const float m1 = beta1 * moment1 + (1 - beta1) * g;
      const float m2 = beta2 * moment2 + (1 - beta2) * g * g;
      moment1 = m1;
      moment2 = m2;
      return direction(p, m1, m2);
    }
  };
  Measure measure(const ops::StepArgs& a) const { return {beta1, beta2, direction(a)}; }

  struct Step {
    float lr;
    Direction direction;
    void operator()(float& p, float, float m1, float m2) const { p -= lr * direction(p, m1, m2); }
  };
  Step step(const ops::StepArgs& a) const {
    const double trust = a.norm_param > 0 && a.norm > 0 ? a.norm_param / a.norm : 1.0;
    return {static_cast<float>(a.lr * trust), direction(a)};
  }

  float beta1, beta2, epsilon, decay;
};

void infer(ir::Infer& c) {
  ops::infer_update(c);
  ops::check_dense(c);
  ops::check_positive(c, "epsilon");
}

const ir::RegisterOp register_lamb =
    ops::optimizer_op("lamb", {"moment1", "moment2", "beta1_pow", "beta2_pow"})
        .attr("beta1", 0.9)
        .attr("beta2", 0.999)
        .attr("epsilon", 1e-6)
        .attr("weight_decay", 0.01)
        .attr("with_decay", ir::Floats{})
        .infer(infer)
        .kernel<ops::UpdateKernel<Lamb>>();

}  // namespace
}  // namespace fleetx
