// localsgd: workers train on their own for k_steps, then take the average of their parameters;
// until begin_step they do so after each step. Communicates 1/k of what data parallel does.
//
//   before                                after (k_steps=4, begin_step=1)
//     update:                               update:
//     [w] = sgd([w], [dw], lr)              [w] = sgd([w], [dw], lr)
//                                           t = increment(@step@)
//                                           sync = t <= 1 or (t - 1) mod 4 == 0
//                                           d = elementwise_sub(w@SNAPSHOT, w)        if sync
//                                           [d] = all_reduce_average([d])             if sync
//                                           w = elementwise_sub(w@SNAPSHOT, d)        if sync
//                                           w@SNAPSHOT = assign(w)                    if sync
//     @step@ = increment(@step@)            @step@ = increment(@step@)
//
// See local_updates.h for what is averaged, and what becomes per rank. Works with any optimizer;
// with k_steps=1 sgd and momentum compute what data parallel does, as their updates are linear in
// the gradients. A worker that clips does so by the norms of its own gradients. Steps are batches,
// also where gradient_merge applies only some of them.
//
// Costs a copy of the parameters, and their differences while they travel.
#include "fleetx/strategies/averaging.h"
#include "fleetx/strategies/data_parallel.h"
#include "fleetx/strategies/local_updates.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

class LocalSgd final : public Strategy {
 public:
  std::string_view name() const override { return "localsgd"; }
  Traits traits() const override {
    Traits traits = traits_of_local_updates(name());
    traits.conflicts.push_back(
        {"adaptive_localsgd", "both say when parameters are averaged; switch one of them off"});
    return traits;
  }
  ir::Attrs options() const override {
    ir::Attrs options = default_fuse_options();
    options.emplace("k_steps", 1);
    options.emplace("begin_step", 1);
    return options;
  }

  // The average of one worker is what it has.
  bool acts_in(const Mesh& mesh) const override { return mesh.size(kDataAxis) > 1; }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh&) const override {
    if (!s.on("localsgd")) return std::nullopt;
    ir::Attrs options = fuse_options(s);
    options.emplace("k_steps", s.get("localsgd_configs.k_steps"));
    options.emplace("begin_step", s.get("localsgd_configs.begin_step"));
    return options;
  }

  void validate(const ir::Program&, const StrategyContext& context) const override {
    check_fuse_options(name(), context.options);
    check_arg(option(context, "k_steps") >= 1, "localsgd: the option 'k_steps' is ",
              option(context, "k_steps"), "; it is the number of steps between two averages, so ",
              "at least 1");
    check_begin_step(name(), context.options);
  }

  void on_updates(Programs& programs, const StrategyContext& context) const override {
    ir::training_of(programs.main, name());
    UpdateOps ops(programs, "localsgd");
    average_parameters(programs, ops, due(ops, context), context.options);
  }

  void check(Phase, const ir::Program& main, const StrategyContext&) const override {
    check_local_updates(main);
  }

 private:
  static int64_t option(const StrategyContext& context, const char* name) {
    return context.options.at(name).as<int64_t>();
  }

  // The guard of the average; "" where it is due in each step.
  static std::string due(UpdateOps& ops, const StrategyContext& context) {
    if (option(context, "k_steps") == 1) return "";
    const std::string step = ops.step_number();
    const std::string begin = ops.constant("begin", option(context, "begin_step"));
    const std::string k = ops.constant("k", option(context, "k_steps"));
    const std::string none = ops.constant("none", 0);
    const std::string early = ops.make("early", "less_equal", {{"x", {step}}, {"y", {begin}}});
    const std::string since = ops.make("since", "elementwise_sub", {{"x", {step}}, {"y", {begin}}});
    const std::string rest = ops.make("rest", "elementwise_mod", {{"x", {since}}, {"y", {k}}});
    const std::string full = ops.make("full", "equal", {{"x", {rest}}, {"y", {none}}});
    return ops.make("sync", "logical_or", {{"x", {early}}, {"y", {full}}});
  }
};

FLEETX_STRATEGY(localsgd, LocalSgd);

}  // namespace
}  // namespace fleetx::strategies
