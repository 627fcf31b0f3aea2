// adadelta (Zeiler, 2012):
//   avg_squared_grad = rho * avg_squared_grad + (1 - rho) * g^2
//   d = sqrt((avg_squared_update + epsilon) / (avg_squared_grad + epsilon)) * g
//   avg_squared_update = rho * avg_squared_update + (1 - rho) * d^2
//   p -= lr * d
// The paper has lr = 1. For g, the lists and sparse gradients see ops/lib/optimizer.h.
#pragma once

#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::optim {

struct AdadeltaOptions {
  LearningRate lr = 0.001;
  double rho = 0.95, epsilon = 1e-6;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};

struct AdadeltaRule {
  using Options = AdadeltaOptions;
  static void declare(Declaration<Options>& d) {
    d.op = "adadelta";
    d.doc = "Adadelta (Zeiler, 2012). The paper has a learning rate of 1.";
    d.option(&Options::rho, {.name = "rho", .doc = "decay of both averages"});
    d.option(&Options::epsilon,
             {.name = "epsilon", .range = positive(), .doc = "added to both averages"});
    d.python = {.name = "Adadelta",
                .arguments =
                    "learning_rate, epsilon, rho, parameters, weight_decay, grad_clip, "
                    "name"};
    d.fluid = {.name = "Adadelta", .required = 1};
  }

  static constexpr std::array<std::string_view, 2> kStates{"avg_squared_grad",
                                                           "avg_squared_update"};

  explicit AdadeltaRule(const Options& o)
      : rho(static_cast<float>(o.rho)), epsilon(static_cast<float>(o.epsilon)) {}

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
  Step step(const StepArgs& a) const { return {a.lr, rho, epsilon}; }

  float rho, epsilon;
};

}  // namespace fleetx::optim

FLEETX_OPTIMIZER(Adadelta);
