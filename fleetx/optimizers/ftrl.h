// ftrl (McMahan et al., 2013), with root(x) = x^-lr_power, which is the square root by default:
//   new = squared + g^2
//   linear += g - (root(new) - root(squared)) / lr * p
//   p = (shrink_l1 * sign(linear) - linear) / (root(new) / lr + 2 * shrink_l2)
//       if |linear| > shrink_l1, else 0
//   squared = new
// shrink_l1 and shrink_l2 belong to the method; both are raised by 1e-10, so that a weight without
// history does not divide by zero. l1 and l2 are the decay of every optimizer.
// For g, the lists and sparse gradients see ops/lib/optimizer.h.
#pragma once

#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::optim {

struct FtrlOptions {
  LearningRate lr = 0.001;
  double shrink_l1 = 0, shrink_l2 = 0, lr_power = -0.5;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};

struct FtrlRule {
  using Options = FtrlOptions;
  static void declare(Declaration<Options>& d) {
    d.op = "ftrl";
    d.doc = "Follow the regularized leader (McMahan et al., 2013).";
    d.option(&Options::shrink_l1, {.name = "shrink_l1",
                                   .python = "l1",
                                   .range = not_negative(),
                                   .doc = "l1 regularization of the method"});
    d.option(&Options::shrink_l2, {.name = "shrink_l2",
                                   .python = "l2",
                                   .range = not_negative(),
                                   .doc = "l2 regularization of the method"});
    d.option(&Options::lr_power, {.name = "lr_power",
                                  .range = not_positive(),
                                  .doc = "minus the power of the sum of squares"});
    d.python = {.name = "Ftrl",
                .arguments =
                    "learning_rate, l1, l2, lr_power, parameters, weight_decay, "
                    "grad_clip, name",
                .required = 1};
    d.fluid = {.name = "Ftrl", .required = 1};
  }

  static constexpr std::array<std::string_view, 2> kStates{"squared", "linear"};

  struct SquareRoot {
    float operator()(float x) const { return std::sqrt(x); }
  };
  struct Power {
    float exponent;
    float operator()(float x) const { return std::pow(x, exponent); }
  };

  template <class Root>
  struct Formula {
    static constexpr auto kStates = FtrlRule::kStates;

    explicit Formula(const Options& o)
        : l1(static_cast<float>(o.shrink_l1) + 1e-10f),
          l2(static_cast<float>(o.shrink_l2) + 1e-10f) {
      if constexpr (std::is_same_v<Root, Power>) root = {-static_cast<float>(o.lr_power)};
    }

    struct Step {
      float lr, l1, l2;
      Root root;
      void operator()(float& p, float g, float& squared, float& linear) const {
        const float sum = squared + g * g;
        const float rooted = root(sum);
        const float z = linear + g - (rooted - root(squared)) / lr * p;
        squared = sum;
        linear = z;
        const float shrunk = ((z > 0 ? l1 : -l1) - z) / (rooted / lr + 2 * l2);
        p = std::abs(z) > l1 ? shrunk : 0.0f;
      }
    };
    Step step(const StepArgs& a) const { return {a.lr, l1, l2, root}; }

    float l1, l2;
    Root root{};
  };

  static auto choose(const Options& o, const auto& use) {
    return o.lr_power == -0.5 ? use(std::type_identity<Formula<SquareRoot>>{})
                              : use(std::type_identity<Formula<Power>>{});
  }
};

}  // namespace fleetx::optim

FLEETX_OPTIMIZER(Ftrl);
