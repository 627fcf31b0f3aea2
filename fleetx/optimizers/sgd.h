// sgd: p -= lr * g. For g, the lists and sparse gradients see ops/lib/optimizer.h.
#pragma once

#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::optim {

struct SgdOptions {
  LearningRate lr = 0.001;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};

struct SgdRule {
  using Options = SgdOptions;
  static void declare(Declaration<Options>& d) {
    d.op = "sgd";
    d.doc = "Stochastic gradient descent.";
    d.python = {.name = "SGD",
                .arguments = "learning_rate, parameters, weight_decay, grad_clip, name"};
    d.fluid = {.name = "SGD", .required = 1};
    d.accept(multi_precision());
  }

  static constexpr std::array<std::string_view, 0> kStates{};

  explicit SgdRule(const Options&) {}

  struct Step {
    float lr;
    void operator()(float& p, float g) const { p -= lr * g; }
  };
  Step step(const StepArgs& a) const { return {a.lr}; }
};

}  // namespace fleetx::optim

FLEETX_OPTIMIZER(Sgd);
