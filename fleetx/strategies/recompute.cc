// recompute: backward does not keep what forward computed between two checkpoints but computes it
// again from the first of them, just before it needs it.
//
//   before                                         after (checkpoints=["a"])
//     forward:                                       forward:
//     a = scale(x) {scale=2.0}                       a = scale(x) {scale=2.0}
//     b = tanh(a)                                    b = tanh(a)
//     c = tanh(b)                                    c = tanh(b)
//     backward:                                      backward:
//     ...                                            b@RECOMPUTE = tanh(a)
//     db = tanh_grad(c, dc)                          c@RECOMPUTE = tanh(b@RECOMPUTE)
//     da = tanh_grad(b, db)                          db = tanh_grad(c@RECOMPUTE, dc)
//                                                    da = tanh_grad(b@RECOMPUTE, db)
//
// Communicates nothing. With n layers and a checkpoint after every k-th, the activations that wait
// for backward are those of n/k checkpoints and of one segment of k layers instead of n layers; the
// price is one more forward pass.
#include <algorithm>

#include "fleetx/autograd/recompute.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

bool marked(const ir::Program& program, const std::string& var) {
  return program.var(var).attrs.contains("recompute");
}

class Recompute final : public Strategy {
 public:
  std::string_view name() const override { return "recompute"; }
  ir::Attrs options() const override { return {{"checkpoints", ir::Strings{}}}; }

  void validate(const ir::Program& main, const StrategyContext& context) const override {
    const auto checkpoints = context.options.at("checkpoints").as<ir::Strings>();
    check_arg(!checkpoints.empty(), "recompute: the option 'checkpoints' is empty; name the ",
              "variables that are kept, for example the output of each block");
    for (const std::string& name : checkpoints) {
      const ir::VarInfo& info = main.var(name);
      check_arg(!info.persistable && !info.is_data, "recompute: the checkpoint '", name,
                "' is not computed by the program");
    }
    const auto is_backward = [](const ir::Op& op) { return op.role == ir::Role::kBackward; };
    check_arg(std::any_of(main.ops().begin(), main.ops().end(), is_backward),
              "recompute: the program has no backward part");
  }

  void apply(ir::Program& main, ir::Program&, const StrategyContext& context) const override {
    autograd::mark_recomputable(main, context.options.at("checkpoints").as<ir::Strings>());
    autograd::recompute_marked(main);
  }

  // No backward op holds on to a forward value that was to be given up.
  void check(const ir::Program& main, const StrategyContext&) const override {
    for (const ir::Op& op : main.ops()) {
      if (op.role != ir::Role::kBackward) continue;
      for (const ir::Names& names : op.inputs)
        for (const std::string& name : names)
          FLEETX_CHECK(!marked(main, name), ir::describe(op), "still reads '", name,
                       "', which was to be computed again");
    }
  }
};

FLEETX_STRATEGY(recompute, Recompute);

}  // namespace
}  // namespace fleetx::strategies
