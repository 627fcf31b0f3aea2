// adagrad (Duchi et al., 2011): h += g^2;  p -= lr * g / (sqrt(h) + epsilon).
// For g, the lists and sparse gradients see ops/lib/optimizer.h.
#pragma once

#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::optim {

struct AdagradOptions {
  LearningRate lr = 0.001;
  double epsilon = 1e-6, initial = 0;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};

struct AdagradRule {
  using Options = AdagradOptions;
  static void declare(Declaration<Options>& d) {
    d.op = "adagrad";
    d.doc = "Adagrad (Duchi et al., 2011).";
    d.option(&Options::epsilon,
             {.name = "epsilon", .range = positive(), .doc = "added to the root"});
    d.option(&Options::initial, {.name = "initial",
                                 .python = "initial_accumulator_value",
                                 .starts = "moment",
                                 .range = not_negative(),
                                 .doc = "the sum of squares at the start"});
    d.python = {.name = "Adagrad",
                .arguments =
                    "learning_rate, epsilon, parameters, weight_decay, grad_clip, name, "
                    "initial_accumulator_value",
                .required = 1};
    d.fluid = {.name = "Adagrad", .required = 1};
  }

  static constexpr std::array<std::string_view, 1> kStates{"moment"};

  explicit AdagradRule(const Options& o) : epsilon(static_cast<float>(o.epsilon)) {}

  struct Step {
    float lr, epsilon;
    void operator()(float& p, float g, float& moment) const {
      const float h = moment + g * g;
      moment = h;
      p -= lr * g / (std::sqrt(h) + epsilon);
    }
  };
  Step step(const StepArgs& a) const { return {a.lr, epsilon}; }

  float epsilon;
};

}  // namespace fleetx::optim

FLEETX_OPTIMIZER(Adagrad);
