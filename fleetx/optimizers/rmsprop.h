// rmsprop (Hinton's lecture 6):
//   mean_square = rho * mean_square + (1 - rho) * g^2
//   mean_grad = rho * mean_grad + (1 - rho) * g                               (only if centered)
//   moment = momentum * moment + lr * g / sqrt(mean_square - mean_grad^2 + epsilon)
//   p -= moment
// The variance under the root is held at 0 or above: rounding can push it below.
// For g, the lists and sparse gradients see ops/lib/optimizer.h.
#pragma once

#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::optim {

struct RmsPropOptions {
  LearningRate lr = 0.001;
  double rho = 0.95, epsilon = 1e-6, momentum = 0;
  bool centered = false;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};

struct RmsPropRule {
  using Options = RmsPropOptions;
  static void declare(Declaration<Options>& d) {
    d.op = "rmsprop";
    d.doc = "RMSProp (Hinton's lecture 6).";
    d.option(&Options::rho, {.name = "rho", .doc = "decay of the mean square"});
    d.option(&Options::epsilon,
             {.name = "epsilon", .range = positive(), .doc = "added under the root"});
    d.option(&Options::momentum, {.name = "momentum", .doc = "how much of the last change stays"});
    d.option(&Options::centered,
             {.name = "centered", .doc = "divide by the deviation, not by the mean square"});
    d.python = {.name = "RMSProp",
                .arguments =
                    "learning_rate, rho, epsilon, momentum, centered, parameters, "
                    "weight_decay, grad_clip, name",
                .required = 1};
    d.fluid = {.name = "RMSProp", .required = 1};
  }

  // Of the op; the plain formula leaves the last one alone.
  static constexpr std::array<std::string_view, 3> kStates{"mean_square", "moment", "mean_grad"};

  struct Base {
    explicit Base(const Options& o)
        : rho(static_cast<float>(o.rho)),
          epsilon(static_cast<float>(o.epsilon)),
          momentum(static_cast<float>(o.momentum)) {}
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
    Step step(const StepArgs& a) const { return {a.lr, rho, epsilon, momentum}; }
  };

  struct Centered : Base {
    using Base::Base;
    static constexpr auto kStates = RmsPropRule::kStates;

    struct Step {
      float lr, rho, epsilon, momentum;
      void operator()(float& p, float g, float& mean_square, float& moment,
                      float& mean_grad) const {
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
    Step step(const StepArgs& a) const { return {a.lr, rho, epsilon, momentum}; }
  };

  static auto choose(const Options& o, const auto& use) {
    return o.centered ? use(std::type_identity<Centered>{}) : use(std::type_identity<Plain>{});
  }
};

}  // namespace fleetx::optim

FLEETX_OPTIMIZER(RmsProp);
