// recompute: backward does not keep what forward computed between two checkpoints but computes it
// again from the first of them, just before it needs it.
//
//   before                                         after (checkpoints=["a", "d"])
//     forward:                                       forward:
//     a = scale(x) {scale=2.0}                       a = scale(x) {scale=2.0}
//     b = tanh(a)                                    b = tanh(a)
//     c = tanh(b)                                    c = tanh(b)
//     d = scale(c)                                   d = scale(c)
//     backward:                                      backward:
//     ...                                            b@RECOMPUTE = tanh(a)
//     db = tanh_grad(c, dc)                          c@RECOMPUTE = tanh(b@RECOMPUTE)
//     da = tanh_grad(b, db)                          db = tanh_grad(c@RECOMPUTE, dc)
//                                                    da = tanh_grad(b@RECOMPUTE, db)
//
// What comes after the last checkpoint is kept: backward begins there, so nothing would be saved.
// Where no checkpoints are named, the framework chooses them (choose_checkpoints.h): for the least
// memory, or with budget_MB for the least work that fits into it.
//
// Communicates nothing. With n layers and a checkpoint after every k-th, the activations that wait
// for backward are those of n/k checkpoints and of one segment of k layers instead of n layers; the
// price is one more forward pass.
#include <algorithm>

#include "fleetx/autograd/recompute.h"
#include "fleetx/base/log.h"
#include "fleetx/strategies/choices.h"
#include "fleetx/strategies/choose_checkpoints.h"
#include "fleetx/strategies/named_var.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

constexpr const char* kRemedy =
    "name variables that forward computes, or none: then they are chosen";

class Recompute final : public Strategy {
 public:
  std::string_view name() const override { return "recompute"; }
  // First: strategies that change gradients see the backward part as it will run.
  Traits traits() const override { return {.acts = {{Phase::kGradients}}}; }
  ir::Attrs options() const override { return {{"checkpoints", ir::Strings{}}, {"budget_MB", 0}}; }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh&) const override {
    if (!s.on("recompute")) return std::nullopt;
    check_arg(!s.on("recompute_configs.enable_offload") &&
                  s.get("recompute_configs.checkpoint_shape").as<ir::Ints>().empty(),
              "recompute_configs: enable_offload moves memory of a device to the host; here there "
              "is only the host. Leave it off");
    return ir::Attrs{{"checkpoints", s.get("recompute_configs.checkpoints")},
                     {"budget_MB", s.get("recompute_configs.budget_MB")}};
  }

  void validate(const ir::Program& main, const StrategyContext& context) const override {
    const auto checkpoints = context.options.at("checkpoints").as<ir::Strings>();
    const auto budget = context.options.at("budget_MB").as<int64_t>();
    check_arg(budget >= 0, "recompute: the option 'budget_MB' is ", budget,
              "; must be positive, or 0 for none");
    check_arg(budget == 0 || checkpoints.empty(),
              "recompute: either name the 'checkpoints' or give a 'budget_MB', for which they are "
              "chosen");
    for (const std::string& name : checkpoints) {
      const ir::VarInfo& info = named_var(main, name, "recompute_configs.checkpoints", kRemedy);
      check_arg(!info.persistable && !info.is_data, "recompute_configs.checkpoints has '", name,
                "', which is ", info.is_data ? "data" : "a parameter or other state",
                " and stays in memory anyway; ", kRemedy);
    }
  }

  void on_gradients(Programs& programs, const StrategyContext& context) const override {
    ir::training_of(programs.main, name());
    if (is_chosen(context)) say(chosen(programs.main, context), context);
    autograd::recompute(programs.main, dropped(programs.main, context));
  }

  // No backward op reads a forward value that recompute has dropped.
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
  static bool is_chosen(const StrategyContext& context) {
    return context.options.at("checkpoints").as<ir::Strings>().empty();
  }

  static Checkpoints chosen(const ir::Program& main, const StrategyContext& context) {
    const auto budget = static_cast<double>(context.options.at("budget_MB").as<int64_t>());
    return choose_checkpoints(main, budget > 0 ? std::optional(budget * (1 << 20)) : std::nullopt);
  }

  static void say(const Checkpoints& c, const StrategyContext& context) {
    const bool budget = context.options.at("budget_MB").as<int64_t>() > 0;
    if (c.kept.empty())
      return log::info("recompute", "nothing is computed again: ",
                       c.bytes_before == 0 ? "nothing is kept"
                       : budget            ? "all that backward waits for fits into budget_MB"
                                           : "it would save no memory");
    log::info("recompute", c.kept.size(), " checkpoints were chosen, from '", c.kept.front(),
              "' to '", c.kept.back(), "'; of what backward waits for, ",
              static_cast<int>(100 * c.bytes / c.bytes_before + 0.5), " % is held at a time");
  }

  // What is given up: all that forward makes before the last checkpoint, but for the checkpoints.
  static std::set<std::string> dropped(const ir::Program& main, const StrategyContext& context) {
    const auto kept = is_chosen(context) ? chosen(main, context).kept
                                         : context.options.at("checkpoints").as<ir::Strings>();
    std::set<std::string> out = autograd::recomputable(main, kept);
    auto last = main.ops().begin();
    for (auto op = main.ops().begin(); op != main.ops().end(); ++op)
      if (op->role == ir::Role::kForward &&
          std::any_of(kept.begin(), kept.end(), [&](const auto& k) { return op->writes(k); }))
        last = op;
    for (auto op = kept.empty() ? main.ops().begin() : std::next(last); op != main.ops().end();
         ++op)
      if (op->role == ir::Role::kForward)
        for (const ir::Names& names : op->outputs)
          for (const std::string& name : names) out.erase(name);
    return out;
  }
};

FLEETX_STRATEGY(recompute, Recompute);

std::vector<Choice> choices(const Mesh&) { return {{"recompute", {{"recompute", true}}}}; }
FLEETX_CHOICES(recompute, Effect::kSame, choices);

}  // namespace
}  // namespace fleetx::strategies
