// momentum: v = mu * v + g;  p -= lr * v, or with nesterov p -= lr * (g + mu * v).
// For g, the lists and sparse gradients see ops/lib/optimizer.h.
#pragma once

#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::optim {

struct MomentumOptions {
  LearningRate lr = 0.001;
  double mu = 0.9;
  bool nesterov = false;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};

struct MomentumRule {
  using Options = MomentumOptions;
  static void declare(Declaration<Options>& d) {
    d.op = "momentum";
    d.doc = "Gradient descent with momentum.";
    d.option(&Options::mu,
             {.name = "mu", .python = "momentum", .doc = "how much of the velocity stays"});
    d.option(&Options::nesterov,
             {.name = "nesterov", .python = "use_nesterov", .doc = "Nesterov's form"});
    d.python = {.name = "Momentum",
                .arguments =
                    "learning_rate, momentum, parameters, use_nesterov, weight_decay, "
                    "grad_clip, name"};
    d.fluid = {.name = "Momentum", .required = 2};
    d.accept(multi_precision());
    d.accept(use_multi_tensor());
    d.accept(rescale_grad());
  }

  static constexpr std::array<std::string_view, 1> kStates{"velocity"};

  explicit MomentumRule(const Options& o) : mu(static_cast<float>(o.mu)), nesterov(o.nesterov) {}

  // p -= lr_v * v + lr_g * g covers both forms.
  struct Step {
    float mu, lr_v, lr_g;
    void operator()(float& p, float g, float& velocity) const {
      const float v = mu * velocity + g;
      velocity = v;
      p -= lr_v * v + lr_g * g;
    }
  };
  Step step(const StepArgs& a) const {
    return nesterov ? Step{mu, a.lr * mu, a.lr} : Step{mu, a.lr, 0.0f};
  }

  float mu;
  bool nesterov;
};

}  // namespace fleetx::optim

FLEETX_OPTIMIZER(Momentum);
