// Optimizers append the backward part and the update ops to a program:
//
//   optim::Momentum opt({.lr = 0.1, .mu = 0.9, .l2 = 1e-4});
//   opt.minimize(loss);
//
// Each is one file of fleetx/optimizers/; this header includes them all. One can also be made by
// its name: optim::make("momentum", {{"lr", 0.1}, {"mu", 0.9}}).
//
// Everything they need from step to step is state of the program, so it is saved and resumed with
// it. Per parameter (attributes of the variable): `lr` is a factor on the learning rate, `l1` and
// `l2` replace the optimizer's decay, need_clip=false leaves it out of clipping.
#pragma once

#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "fleetx/autograd/backward.h"
#include "fleetx/optimizers/all.h"

namespace fleetx::optim {

using autograd::ParamGrad;

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
  using WithDecay = std::function<bool(const std::string& param)>;
  struct Common {
    LearningRate lr = 0.001;
    double l1 = 0, l2 = 0;
    Clip clip = {};
    WithDecay with_decay = nullptr;  // besides what the options say; default: all
  };

  // `values`: of all options of the declaration.
  Optimizer(const OptimizerDef& def, const ir::Attrs& values, Common common);

 private:
  struct State {
    std::string slot;
    bool scalar = false;
    double initial = 0;
  };
  // The update op and what all its calls share.
  struct Rule {
    std::string op;
    ir::Attrs attrs = {};
    std::vector<State> states = {};
    WithDecay with_decay = nullptr;  // has the op a with_decay list: does this parameter decay?
  };

  ir::Var make_learning_rate(ir::Builder& b);
  void update_all(ir::Builder& b, const std::vector<ParamGrad>& gradients) const;
  void update(ir::Builder& b, const ParamGrad& pair, const ir::Var& scale) const;
  // In the program's training part.
  void note_update(ir::Builder& b, const ParamGrad& pair) const;

  Rule rule_;
  Common common_;
  ir::Var lr_var_;
};

// The optimizer of a rule of fleetx/optimizers/: optim::Adam is Typed<AdamRule>.
template <class R>
class Typed final : public Optimizer {
 public:
  using Options = typename R::Options;

  explicit Typed(const Options& o = {})
      : Optimizer(declared<R>(), declared<R>().values(o), common(o)) {}

 private:
  static Common common(const Options& o) {
    Common c{.lr = o.lr, .clip = o.clip};
    if constexpr (requires { o.l1; }) {
      c.l1 = o.l1;
      c.l2 = o.l2;
    }
    if constexpr (requires { o.with_decay; }) c.with_decay = o.with_decay;
    return c;
  }
};

// What options of optim::make cannot hold.
struct MakeArgs {
  ir::Var schedule = {};  // in the place of the option lr
  Clip clip = {};
};
// An optimizer by its name. `options` are those of its C++ struct: numbers, flags and lists of
// names; l1 and l2 for all of them; `without_decay`, names of parameters, where it has a decay of
// its own. An unknown option, a wrong type or a value out of range is kInvalidArgument.
std::unique_ptr<Optimizer> make(std::string_view name, const ir::Attrs& options = {},
                                const MakeArgs& args = {});

}  // namespace fleetx::optim
