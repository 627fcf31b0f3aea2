// decayed_adagrad: h = decay * h + (1 - decay) * g^2;  p -= lr * g / (sqrt(h) + epsilon).
// Adagrad whose sum of squares forgets; it is in 1.x only. For g, the lists and sparse gradients
// see ops/lib/optimizer.h.
#pragma once

#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::optim {

struct DecayedAdagradOptions {
  LearningRate lr = 0.001;
  double decay = 0.95, epsilon = 1e-6;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};

struct DecayedAdagradRule {
  using Options = DecayedAdagradOptions;
  static void declare(Declaration<Options>& d) {
    d.op = "decayed_adagrad";
    d.doc = "Adagrad with a running mean of squares in the place of their sum.";
    d.option(&Options::decay,
             {.name = "decay", .range = fraction(), .doc = "how much of the mean stays"});
    d.option(&Options::epsilon,
             {.name = "epsilon", .range = positive(), .doc = "added to the root"});
    d.fluid = {.name = "DecayedAdagrad",
               .arguments =
                   "learning_rate, decay, epsilon, parameter_list, regularization, "
                   "grad_clip, name",
               .required = 1};
  }

  static constexpr std::array<std::string_view, 1> kStates{"moment"};

  explicit DecayedAdagradRule(const Options& o)
      : decay(static_cast<float>(o.decay)), epsilon(static_cast<float>(o.epsilon)) {}

  struct Step {
    float lr, decay, epsilon;
    void operator()(float& p, float g, float& moment) const {
      const float h = decay * moment + (1 - decay) * g * g;
      moment = h;
      p -= lr * g / (std::sqrt(h) + epsilon);
    }
  };
  Step step(const StepArgs& a) const { return {a.lr, decay, epsilon}; }

  float decay, epsilon;
};

}  // namespace fleetx::optim

FLEETX_OPTIMIZER(DecayedAdagrad);
