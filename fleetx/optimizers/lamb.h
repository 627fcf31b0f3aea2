// lamb (You et al., 2020): adam's step r, scaled per parameter by |p| / |r|.
//   m1 = beta1 * m1 + (1 - beta1) * g;   m2 = beta2 * m2 + (1 - beta2) * g^2
//   r = (m1 / (1 - beta1_pow)) / (sqrt(m2 / (1 - beta2_pow)) + epsilon) + wd * p
//   p -= lr * |p| / |r| * r,  the factor is 1 if either norm is 0
// wd is weight_decay, or 0 where with_decay is 0. Dense gradients only.
// The first pass updates the moments and takes the norms, the second computes r again from them.
// For g, the powers and the lists see adam.h and ops/lib/optimizer.h.
#pragma once

#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::optim {

struct LambOptions {
  LearningRate lr = 0.001;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6, weight_decay = 0.01;
  std::vector<std::string> exclude = {};  // no weight_decay: names that end in one of these
  double l1 = 0, l2 = 0;
  Clip clip = {};
};

struct LambRule {
  using Options = LambOptions;
  static void declare(Declaration<Options>& d) {
    d.op = "lamb";
    d.doc = "Adam with a learning rate per layer, for large batches (You et al., 2020).";
    d.option(&Options::beta1, {.name = "beta1", .range = fraction(), .doc = "decay of the mean"});
    d.option(&Options::beta2,
             {.name = "beta2", .range = fraction(), .doc = "decay of the mean square"});
    d.option(&Options::epsilon,
             {.name = "epsilon", .range = positive(), .doc = "added to the root"});
    d.option(&Options::weight_decay, {.name = "weight_decay",
                                      .python = "lamb_weight_decay",
                                      .doc = "decay, part of the step that is scaled"});
    d.option(&Options::exclude, {.name = "exclude",
                                 .match = Match::kEndsWith,
                                 .doc = "parameters whose name ends in one of these: no decay"});
    d.decay_filter = {.kind = DecayFilter::Kind::kExcludesParameter,
                      .python = "exclude_from_weight_decay_fn"};
    d.python = {.name = "Lamb",
                .arguments =
                    "learning_rate, lamb_weight_decay, beta1, beta2, epsilon, "
                    "parameters, grad_clip, exclude_from_weight_decay_fn, name"};
    d.fluid = {.name = "Lamb",
               .arguments =
                   "learning_rate, lamb_weight_decay, beta1, beta2, epsilon, "
                   "parameter_list, regularization, grad_clip, "
                   "exclude_from_weight_decay_fn, name"};
    d.accept(multi_precision());
  }

  static constexpr std::array<std::string_view, 2> kStates{"moment1", "moment2"};
  static constexpr bool kPowers = true, kNorms = true;

  LambRule(const Options& o, bool decays)
      : beta1(static_cast<float>(o.beta1)),
        beta2(static_cast<float>(o.beta2)),
        epsilon(static_cast<float>(o.epsilon)),
        decay(decays ? static_cast<float>(o.weight_decay) : 0.0f) {}

  struct Direction {
    float correct1, correct2, epsilon, decay;
    float operator()(float p, float m1, float m2) const {
      return m1 * correct1 / (std::sqrt(m2 * correct2) + epsilon) + decay * p;
    }
  };
  Direction direction(const StepArgs& a) const {
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
  Measure measure(const StepArgs& a) const { return {beta1, beta2, direction(a)}; }

  struct Step {
    float lr;
    Direction direction;
    void operator()(float& p, float, float m1, float m2) const { p -= lr * direction(p, m1, m2); }
  };
  Step step(const StepArgs& a) const {
    const double trust = a.norm_param > 0 && a.norm > 0 ? a.norm_param / a.norm : 1.0;
    return {static_cast<float>(a.lr * trust), direction(a)};
  }

  float beta1, beta2, epsilon, decay;
};

}  // namespace fleetx::optim

FLEETX_OPTIMIZER(Lamb);
