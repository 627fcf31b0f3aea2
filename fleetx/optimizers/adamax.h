// adamax (Kingma and Ba, 2015):
//   m = beta1 * m + (1 - beta1) * g
//   u = max(beta2 * u, |g|)
//   p -= lr / (1 - beta1_pow) * m / (u + epsilon)
// The powers are as in adam.h. epsilon is not part of u, so that what pads a layout stays zero.
// For g, the lists and sparse gradients see ops/lib/optimizer.h.
#pragma once

#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::optim {

struct AdamaxOptions {
  LearningRate lr = 0.001;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};

struct AdamaxRule {
  using Options = AdamaxOptions;
  static void declare(Declaration<Options>& d) {
    d.op = "adamax";
    d.doc = "Adam with the largest recent gradient in the place of their mean square.";
    d.option(&Options::beta1, {.name = "beta1", .range = fraction(), .doc = "decay of the mean"});
    d.option(&Options::beta2,
             {.name = "beta2", .range = fraction(), .doc = "decay of the largest gradient"});
    d.option(&Options::epsilon,
             {.name = "epsilon", .range = positive(), .doc = "added to the divisor"});
    d.python = {.name = "Adamax",
                .arguments =
                    "learning_rate, beta1, beta2, epsilon, parameters, weight_decay, "
                    "grad_clip, name"};
    d.fluid = {.name = "Adamax"};
  }

  static constexpr std::array<std::string_view, 2> kStates{"moment", "inf_norm"};
  static constexpr bool kPowers = true;

  explicit AdamaxRule(const Options& o)
      : beta1(static_cast<float>(o.beta1)),
        beta2(static_cast<float>(o.beta2)),
        epsilon(static_cast<float>(o.epsilon)) {}

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
  Step step(const StepArgs& a) const {
    return {beta1, beta2, static_cast<float>(a.lr / (1.0 - static_cast<double>(a.beta1_pow))),
            epsilon};
  }

  float beta1, beta2, epsilon;
};

}  // namespace fleetx::optim

FLEETX_OPTIMIZER(Adamax);
