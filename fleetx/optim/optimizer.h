// Optimizers append the backward part and the update ops to a program:
//
//   optim::Momentum opt({.lr = 0.1, .mu = 0.9, .l2 = 1e-4});
//   opt.minimize(loss);
//
// Everything they need from step to step is state of the program, so it is saved and resumed with
// it. Per parameter (attributes of the variable): `lr` is a factor on the learning rate, `l1` and
// `l2` replace the optimizer's decay, need_clip=false leaves it out of clipping.
#pragma once

#include <functional>
#include <source_location>
#include <string>
#include <variant>
#include <vector>

#include "fleetx/autograd/backward.h"

namespace fleetx::optim {

using autograd::ParamGrad;

// A number, or a schedule computed in the program (see schedule.h).
using LearningRate = std::variant<double, ir::Var>;

// What happens to gradients before decay and update.
struct Clip {
  enum class Kind { kNone, kValue, kNorm, kGlobalNorm };
  Kind kind = Kind::kNone;
  double low = 0, high = 0;  // kValue
  double max_norm = 0;       // kNorm, kGlobalNorm
};
Clip clip_by_value(double low, double high);
Clip clip_by_norm(double max_norm);         // each gradient by itself
Clip clip_by_global_norm(double max_norm);  // all gradients as one vector

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // backward, then apply_gradients.
  std::vector<ParamGrad> minimize(const ir::Var& loss,
                                  const autograd::BackwardOptions& options = {},
                                  std::source_location where = std::source_location::current());
  std::vector<ParamGrad> backward(const ir::Var& loss,
                                  const autograd::BackwardOptions& options = {}) const;
  // Clipping, updates and the increment of the step counter.
  void apply_gradients(const std::vector<ParamGrad>& gradients,
                       std::source_location where = std::source_location::current());

  // The learning rate in the program of the last apply_gradients, f32[1].
  const ir::Var& learning_rate() const { return lr_var_; }

 protected:
  struct State {
    std::string slot;  // of the op: input <slot>, output <slot>_out; variable <param>_<slot>_0
    bool scalar = false;
    double initial = 0;
  };
  // The update op and what all its calls share.
  struct Rule {
    std::string op;
    ir::Attrs attrs = {};
    std::vector<State> states = {};
    // Has the op a with_decay list: does this parameter decay?
    std::function<bool(const std::string& param)> with_decay = nullptr;
  };
  struct Common {
    LearningRate lr;
    double l1 = 0, l2 = 0;
    Clip clip = {};
  };

  Optimizer(Rule rule, Common common) : rule_(std::move(rule)), common_(std::move(common)) {}

 private:
  ir::Var make_learning_rate(ir::Builder& b);
  void update(ir::Builder& b, const ParamGrad& pair, const ir::Var& scale) const;

  Rule rule_;
  Common common_;
  ir::Var lr_var_;
};

struct SgdOptions {
  LearningRate lr = 0.001;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};
class Sgd final : public Optimizer {
 public:
  explicit Sgd(SgdOptions o = {});
};

struct MomentumOptions {
  LearningRate lr = 0.001;
  double mu = 0.9;
  bool nesterov = false;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};
class Momentum final : public Optimizer {
 public:
  explicit Momentum(MomentumOptions o = {});
};

struct AdamOptions {
  LearningRate lr = 0.001;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};
class Adam final : public Optimizer {
 public:
  explicit Adam(AdamOptions o = {});
};

class Adamax final : public Optimizer {
 public:
  explicit Adamax(AdamOptions o = {});
};

// Decay is taken from the parameter directly, not through the gradient (Loshchilov, Hutter 2017).
struct AdamWOptions {
  LearningRate lr = 0.001;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double decay = 0.01;
  std::function<bool(const std::string& param)> with_decay = nullptr;  // default: all
  Clip clip = {};
};
class AdamW final : public Optimizer {
 public:
  explicit AdamW(AdamWOptions o = {});
};

struct AdagradOptions {
  LearningRate lr = 0.001;
  double epsilon = 1e-6, initial = 0;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};
class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(AdagradOptions o = {});
};

struct RmsPropOptions {
  LearningRate lr = 0.001;
  double rho = 0.95, epsilon = 1e-6, momentum = 0;
  bool centered = false;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};
class RmsProp final : public Optimizer {
 public:
  explicit RmsProp(RmsPropOptions o = {});
};

struct AdadeltaOptions {
  LearningRate lr = 0.001;
  double rho = 0.95, epsilon = 1e-6;
  double l1 = 0, l2 = 0;
  Clip clip = {};
};
class Adadelta final : public Optimizer {
 public:
  explicit Adadelta(AdadeltaOptions o = {});
};

// shrink_l1 and shrink_l2 are FTRL's own regularization (McMahan et al. 2013).
struct FtrlOptions {
  LearningRate lr = 0.001;
  double shrink_l1 = 0, shrink_l2 = 0, lr_power = -0.5;
  Clip clip = {};
};
class Ftrl final : public Optimizer {
 public:
  explicit Ftrl(FtrlOptions o = {});
};

struct LarsMomentumOptions {
  LearningRate lr = 0.001;
  double mu = 0.9, lars_coeff = 0.001, lars_weight_decay = 0.0005, epsilon = 0;
  std::vector<std::string> exclude = {};  // parameters whose name contains one of these
  Clip clip = {};
};
class LarsMomentum final : public Optimizer {
 public:
  explicit LarsMomentum(LarsMomentumOptions o = {});
};

struct LambOptions {
  LearningRate lr = 0.001;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6, weight_decay = 0.01;
  std::vector<std::string> exclude = {};  // parameters whose name ends in one of these
  Clip clip = {};
};
class Lamb final : public Optimizer {
 public:
  explicit Lamb(LambOptions o = {});
};

}  // namespace fleetx::optim
