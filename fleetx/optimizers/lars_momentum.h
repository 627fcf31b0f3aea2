// lars_momentum (You et al., 2017): a learning rate per parameter from the norms of it and its
// gradient.
//   local_lr = lr * lars_coeff * |p| / (|g| + wd * |p| + epsilon)   if wd, |p| and |g| are not 0
//              lr                                                  otherwise
//   d = local_lr * (g + wd * p);  v = mu * v + d;  p -= v, or with nesterov p -= d + mu * v
// wd is lars_weight_decay, or 0 where with_decay is 0. Dense gradients only.
// For g and the lists see ops/lib/optimizer.h.
#pragma once

#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::optim {

struct LarsMomentumOptions {
  LearningRate lr = 0.001;
  double mu = 0.9, lars_coeff = 0.001, lars_weight_decay = 0.0005, epsilon = 0;
  bool nesterov = false;
  std::vector<std::string> exclude = {};  // no lars_weight_decay: names that contain one of these
  double l1 = 0, l2 = 0;
  Clip clip = {};
};

struct LarsMomentumRule {
  using Options = LarsMomentumOptions;
  static void declare(Declaration<Options>& d) {
    d.op = "lars_momentum";
    d.doc = "Momentum with a learning rate per layer, from the norms of parameter and gradient.";
    d.option(&Options::mu,
             {.name = "mu", .python = "momentum", .doc = "how much of the velocity stays"});
    d.option(&Options::lars_coeff, {.name = "lars_coeff", .doc = "factor on the local rate"});
    d.option(&Options::lars_weight_decay,
             {.name = "lars_weight_decay", .doc = "l2 decay, part of the local rate"});
    d.option(&Options::epsilon,
             {.name = "epsilon", .range = not_negative(), .doc = "added to the norms"});
    d.option(&Options::nesterov,
             {.name = "nesterov", .python = "use_nesterov", .doc = "Nesterov's form"});
    d.option(&Options::exclude, {.name = "exclude",
                                 .python = "exclude_from_weight_decay",
                                 .match = Match::kContains,
                                 .doc = "parameters whose name contains one of these: no decay"});
    d.python = {.name = "LarsMomentum",
                .arguments =
                    "learning_rate, momentum, lars_coeff, lars_weight_decay, parameters, "
                    "weight_decay, grad_clip, name, exclude_from_weight_decay, epsilon",
                .required = 1};
    d.fluid = {.name = "LarsMomentum", .required = 2};
    d.accept(multi_precision());
    d.accept(rescale_grad());
  }

  static constexpr std::array<std::string_view, 1> kStates{"velocity"};
  static constexpr bool kNorms = true;

  LarsMomentumRule(const Options& o, bool decays)
      : mu(static_cast<float>(o.mu)),
        coeff(o.lars_coeff),
        decay(decays ? o.lars_weight_decay : 0.0),
        epsilon(o.epsilon),
        nesterov(o.nesterov) {}

  struct Measure {
    float operator()(float, float g, float&) const { return g; }
  };
  Measure measure(const StepArgs&) const { return {}; }

  // p -= of_v * v + of_d * d covers both forms.
  struct Step {
    float mu, lr, decay, of_v, of_d;
    void operator()(float& p, float g, float& velocity) const {
      const float d = lr * (g + decay * p);
      const float v = mu * velocity + d;
      velocity = v;
      p -= of_v * v + of_d * d;
    }
  };
  Step step(const StepArgs& a) const {
    double lr = a.lr;
    if (decay > 0 && a.norm_param > 0 && a.norm > 0)
      lr *= coeff * a.norm_param / (a.norm + decay * a.norm_param + epsilon);
    return {mu, static_cast<float>(lr), static_cast<float>(decay), nesterov ? mu : 1.0f,
            nesterov ? 1.0f : 0.0f};
  }

  float mu;
  double coeff, decay, epsilon;
  bool nesterov;
};

}  // namespace fleetx::optim

FLEETX_OPTIMIZER(LarsMomentum);
