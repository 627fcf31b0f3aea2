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
#include "fleetx/autograd/recompute.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

class Recompute final : public Strategy {
 public:
  std::string_view name() const override { return "recompute"; }
  // First: strategies that change gradients see the backward part as it will run.
  Traits traits() const override { return {.acts = {{Phase::kGradients}}}; }
  ir::Attrs options() const override { return {{"checkpoints", ir::Strings{}}}; }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh&) const override {
    if (!s.on("recompute")) return std::nullopt;
    check_arg(!s.on("recompute_configs.enable_offload") &&
                  s.get("recompute_configs.checkpoint_shape").as<ir::Ints>().empty(),
              "recompute_configs: enable_offload moves memory of a device to the host; here there "
              "is only the host. Leave it off");
    return ir::Attrs{{"checkpoints", s.get("recompute_configs.checkpoints")}};
  }

  void validate(const ir::Program& main, const StrategyContext& context) const override {
    const auto checkpoints = context.options.at("checkpoints").as<ir::Strings>();
    check_arg(!checkpoints.empty(), "recompute: the option 'checkpoints' is empty; name the ",
              "variables that are kept, for example the output of each block");
    for (const std::string& name : checkpoints) {
      const ir::VarInfo& info = main.var(name);
      check_arg(!info.persistable && !info.is_data, "recompute: the checkpoint '", name,
                "' is not computed by the program");
    }
  }

  void on_gradients(Programs& programs, const StrategyContext& context) const override {
    ir::training_of(programs.main, "recompute");
    autograd::recompute(programs.main, dropped(programs.main, context));
  }

  // No backward op holds on to a forward value that was to be given up.
  void check(Phase, const ir::Program& main, const StrategyContext& context) const override {
    const std::set<std::string> gone = dropped(main, context);
    for (const ir::Op& op : main.ops()) {
      if (op.role != ir::Role::kBackward) continue;
      for (const ir::Names& names : op.inputs)
        for (const std::string& name : names)
          FLEETX_CHECK(!gone.contains(name), ir::describe(op), "still reads '", name,
                       "', which was to be computed again");
    }
  }

 private:
  static std::set<std::string> dropped(const ir::Program& main, const StrategyContext& context) {
    return autograd::recomputable(main, context.options.at("checkpoints").as<ir::Strings>());
  }
};

FLEETX_STRATEGY(recompute, Recompute);

}  // namespace
}  // namespace fleetx::strategies
