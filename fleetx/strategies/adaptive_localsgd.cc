// adaptive_localsgd: localsgd with a number of steps that follows the loss: the smaller it has
// become, the more often workers take their average (Wang and Joshi, 2018).
//
//   before                                after
//     update:                               update:
//     [w] = sgd([w], [dw], lr)              [w] = sgd([w], [dw], lr)
//                                           t = increment(@step@)
//                                           sync = t <= begin_step or t - last >= k
//                                           mean = assign(loss)                       if sync
//                                           [mean] = all_reduce([mean])               if sync
//                                           k, loss0, lr0 = adaptive_k_steps(...)     if sync
//                                           last = assign(t)                          if sync
//                                           d, w, w@SNAPSHOT: as in localsgd          if sync
//     @step@ = increment(@step@)            @step@ = increment(@step@)
//
// k starts as init_k_steps; after begin_step each average sets it to
//   ceil(sqrt(init_k_steps * lr0 * loss / (lr * loss0))), within [1, 16],
// where loss is the mean of all workers, and loss0 and lr0 are those of the first step, which
// always ends with an average. Where that is no number (loss0 or lr is 0, a loss is negative or not
// finite), k stays as it is. All of it is state of the program, so it resumes.
#include <algorithm>

#include "fleetx/strategies/averaging.h"
#include "fleetx/strategies/data_parallel.h"
#include "fleetx/strategies/local_updates.h"
#include "fleetx/strategies/state.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

constexpr const char* kSteps = "adaptive_localsgd_k";
constexpr const char* kLast = "adaptive_localsgd_last";
constexpr const char* kLoss0 = "adaptive_localsgd_loss0";
constexpr const char* kLr0 = "adaptive_localsgd_lr0";

class AdaptiveLocalSgd final : public Strategy {
 public:
  std::string_view name() const override { return "adaptive_localsgd"; }
  Traits traits() const override { return traits_of_local_updates(name()); }
  ir::Attrs options() const override {
    ir::Attrs options = default_fuse_options();
    options.emplace("init_k_steps", 1);
    options.emplace("begin_step", 1);
    return options;
  }

  bool acts_in(const Mesh& mesh) const override { return mesh.size(kDataAxis) > 1; }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh&) const override {
    if (!s.on("adaptive_localsgd")) return std::nullopt;
    ir::Attrs options = fuse_options(s);
    options.emplace("init_k_steps", s.get("adaptive_localsgd_configs.init_k_steps"));
    options.emplace("begin_step", s.get("adaptive_localsgd_configs.begin_step"));
    return options;
  }

  void validate(const ir::Program&, const StrategyContext& context) const override {
    check_fuse_options(name(), context.options);
    check_arg(option(context, "init_k_steps") >= 1, "adaptive_localsgd: the option ",
              "'init_k_steps' is ", option(context, "init_k_steps"),
              "; it is a number of steps between two averages, so at least 1");
    check_begin_step(name(), context.options);
  }

  void on_updates(Programs& programs, const StrategyContext& context) const override {
    const ir::Training& training = ir::training_of(programs.main, name());
    const int64_t k = option(context, "init_k_steps");
    const int64_t begin = std::max<int64_t>(option(context, "begin_step"), 1);
    add_state(programs, kSteps, {DType::kI64, {1}}, static_cast<double>(k));
    add_state(programs, kLast, {DType::kI64, {1}});
    add_state(programs, kLoss0, {DType::kF32, {1}});
    add_state(programs, kLr0, {DType::kF32, {1}});
    for (const char* state : {kSteps, kLast, kLoss0, kLr0}) set_stand_in(programs, state, "");

    UpdateOps ops(programs, "adaptive_localsgd");
    const std::string step = ops.step_number();
    const std::string limit = ops.constant("begin", begin);
    const std::string early = ops.make("early", "less_equal", {{"x", {step}}, {"y", {limit}}});
    const std::string since = ops.make("since", "elementwise_sub", {{"x", {step}}, {"y", {kLast}}});
    const std::string full = ops.make("full", "greater_equal", {{"x", {since}}, {"y", {kSteps}}});
    const std::string sync = ops.make("sync", "logical_or", {{"x", {early}}, {"y", {full}}});

    const std::string mean =
        ops.make("loss", "cast", {{"x", {training.loss}}}, {{"dtype", DType::kF32}}, sync);
    ops.op("all_reduce", {{"xs", {mean}}}, {{"out", {mean}}},
           {{"group", kDataAxis}, {"op", "average"}}, sync);
    ops.op("adaptive_k_steps",
           {{"k", {kSteps}},
            {"loss0", {kLoss0}},
            {"lr0", {kLr0}},
            {"loss", {mean}},
            {"lr", {training.parameters.front().learning_rate}},
            {"step", {step}}},
           {{"k_out", {kSteps}}, {"loss0_out", {kLoss0}}, {"lr0_out", {kLr0}}},
           {{"init_k_steps", k}, {"begin_step", begin}}, sync);
    ops.op("assign", {{"x", {step}}}, {{"out", {kLast}}}, {}, sync);
    average_parameters(programs, ops, sync, context.options);
  }

  void check(Phase, const ir::Program& main, const StrategyContext&) const override {
    check_local_updates(main);
  }

 private:
  static int64_t option(const StrategyContext& context, const char* name) {
    return context.options.at(name).as<int64_t>();
  }
};

FLEETX_STRATEGY(adaptive_localsgd, AdaptiveLocalSgd);

}  // namespace
}  // namespace fleetx::strategies
