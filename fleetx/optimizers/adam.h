// adam (Kingma and Ba, 2015):
//   m1 = beta1 * m1 + (1 - beta1) * g
//   m2 = beta2 * m2 + (1 - beta2) * g^2
//   p -= lr * (m1 / (1 - beta1_pow)) / (sqrt(m2 / (1 - beta2_pow)) + epsilon)
// beta1_pow and beta2_pow, one pair per parameter, start at beta1 and beta2 and are multiplied by
// them after each step.
// adamw (Loshchilov and Hutter, 2019): the same after p *= 1 - lr * coeff, for parameters whose
// with_decay is not 0.
// For g, the lists and sparse gradients see ops/lib/optimizer.h.
#pragma once

#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::optim {

struct AdamOptions {
  LearningRate lr = 0.001;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};

// Decay is taken from the parameter directly, not through the gradient.
struct AdamWOptions {
  LearningRate lr = 0.001;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double decay = 0.01;
  std::function<bool(const std::string& param)> with_decay = nullptr;  // default: all
  Clip clip = {};
};

struct AdamRule {
  using Options = AdamOptions;
  static void declare(Declaration<Options>& d) {
    d.op = "adam";
    d.doc = "Adam (Kingma and Ba, 2015).";
    moments(d);
    d.python = {.name = "Adam",
                .arguments =
                    "learning_rate, beta1, beta2, epsilon, parameters, weight_decay, "
                    "grad_clip, lazy_mode, name"};
    d.fluid = {.name = "Adam",
               .arguments =
                   "learning_rate, beta1, beta2, epsilon, parameter_list, "
                   "regularization, grad_clip, name, lazy_mode"};
  }
  template <class O>
  static void moments(Declaration<O>& d) {
    d.option(&O::beta1, {.name = "beta1", .range = fraction(), .doc = "decay of the mean"});
    d.option(&O::beta2, {.name = "beta2", .range = fraction(), .doc = "decay of the mean square"});
    d.option(&O::epsilon, {.name = "epsilon", .range = positive(), .doc = "added to the root"});
    d.accept(lazy_mode());
    d.accept(multi_precision());
    d.accept(use_multi_tensor());
    d.accept(amsgrad());
  }

  static constexpr std::array<std::string_view, 2> kStates{"moment1", "moment2"};
  static constexpr bool kPowers = true;

  template <class O>
  explicit AdamRule(const O& o)
      : beta1(static_cast<float>(o.beta1)),
        beta2(static_cast<float>(o.beta2)),
        epsilon(o.epsilon) {}

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
  Step step(const StepArgs& a) const {
    const double root = std::sqrt(1.0 - static_cast<double>(a.beta2_pow));
    const double lr = a.lr * root / (1.0 - static_cast<double>(a.beta1_pow));
    return {beta1, beta2, static_cast<float>(lr), static_cast<float>(epsilon * root),
            static_cast<float>(1.0 - a.lr * coeff)};
  }

  float beta1, beta2;
  double epsilon, coeff = 0;
};

struct AdamWRule : AdamRule {
  using Options = AdamWOptions;
  static void declare(Declaration<Options>& d) {
    d.op = "adamw";
    d.doc = "Adam whose decay is taken from the parameter directly, not through the gradient.";
    moments(d);
    d.option(&Options::decay, {.name = "decay",
                               .python = "weight_decay",
                               .attr = "coeff",
                               .doc = "decay, times the learning rate"});
    d.decay_filter = {.kind = DecayFilter::Kind::kKeepsName, .python = "apply_decay_param_fun"};
    d.accept({.name = "lr_ratio",
              .reason = "give layers their own rate by ParamAttr(learning_rate=...)"});
    d.python = {.name = "AdamW",
                .arguments =
                    "learning_rate, beta1, beta2, epsilon, parameters, weight_decay, "
                    "apply_decay_param_fun, grad_clip, lazy_mode, name"};
  }

  AdamWRule(const Options& o, bool decays) : AdamRule(o) { coeff = decays ? o.decay : 0.0; }
};

}  // namespace fleetx::optim

FLEETX_OPTIMIZER(Adam);
FLEETX_OPTIMIZER(AdamW);
