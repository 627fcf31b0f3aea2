// pipeline: the layers of a network are divided into stages, each on a worker of its own. A batch
// is cut into micro-batches, which go through the stages one behind the other, so that all stages
// compute at once. What one worker would do with the same micro-batches.
//
//   before (w1 on stage 0, w2 on stage 1)     after: stage 0 of 2, 2 micro-batches, 1F1B
//     h = fc(x, w1)                             x@MB0, x@MB1 = split(x)
//     y = fc(h, w2)                             h@MB0 = fc(x@MB0, w1)
//     loss = mean(y)                            t0 = send_start([h@MB0]) {group="pp/2", peer=1}
//     backward:                                 dh@MB0, t1 = recv_start(x) {group="pp", peer=1}
//     dloss = fill() {value=1.0}                h@MB1 = fc(x@MB1, w1)
//     dy = mean_grad(y, dloss)                  _ = send_wait([h@MB0], t0)
//     dh, dw2 = fc_grad(h, w2, dy)              t2 = send_start([h@MB1]) {group="pp/2", peer=1}
//     dw1 = fc_grad(x, w1, dh)                  backward:
//                                               dh@MB0 = recv_wait(dh@MB0, t1)
//                                               dw1@MB0 = fc_grad(x@MB0, w1, dh@MB0)
//                                               ...
//                                               dw1 = sum([dw1@MB0, dw1@MB1])
//     update:                                   update:
//     [w2] = sgd([w2], [dw2], lr)               [w1] = sgd([w1], [dw1], lr)
//     [w1] = sgd([w1], [dw1], lr)
//
// Stage 1 receives h@MB0, begins backward with 1/2 instead of 1, and sends dh@MB0. The loss is the
// mean over the micro-batches, and goes from its stage to all. Who computes what: pipeline_stages.h
// and pipeline_cut.h; in which order: pipeline_schedule.h; how messages travel: pipeline_unroll.h.
//
// Parameters and state of other stages are not here (placement owned(pp, stage)); checkpoints are
// whole. A parameter that several stages use belongs to the first of them, which sends it to the
// others at the beginning of a step, gets their gradients at its end, and alone updates it. Global
// norms are added up over the stages.
//
// Moves the values that cross a cut, and their gradients, once per step; parameters of several
// stages twice. With S stages and m micro-batches a worker waits for (S - 1) / (m + S - 1) of the
// time. 1F1B keeps the activations of at most S micro-batches, F-then-B of m.
#include "fleetx/strategies/pipeline.h"

#include <algorithm>

#include "fleetx/base/log.h"
#include "fleetx/ir/infer.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/strategies/choices.h"
#include "fleetx/strategies/divided_norms.h"
#include "fleetx/strategies/owners.h"
#include "fleetx/strategies/pipeline_stages.h"
#include "fleetx/strategies/pipeline_unroll.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

using ir::Names;
using ir::Role;
using Position = ir::Rewriter::Position;

constexpr int64_t kExampleRows = 8;  // of a micro-batch, where nobody says how many it has

int stages_of(const Mesh& mesh) { return mesh.has(kStageAxis) ? mesh.size(kStageAxis) : 1; }
int stage_of(const Mesh& mesh) { return mesh.has(kStageAxis) ? mesh.coordinate(kStageAxis) : 0; }

int64_t number(const StrategyContext& context, const char* option) {
  return context.options.at(option).as<int64_t>();
}

// Updates of what this stage has, and nothing about the rest.
class OwnUpdates {
 public:
  OwnUpdates(Programs& programs, int stage)
      : programs_(programs), rw_(programs.main), stage_(stage) {
    // A gradient that is clipped by itself has another name behind it.
    std::map<std::string, std::string> clipped;
    for (const ir::Op& op : programs.main.ops())
      if (op.type() == "clip" || op.type() == "clip_by_norm" || op.type() == "clip_rows")
        clipped.emplace(op.out("out").front(), op.in("x").front());
    for (const ir::Training::Parameter& p : programs.main.training().parameters) {
      ir::Training::Parameter unclipped = p;
      if (const auto it = clipped.find(p.gradient); it != clipped.end())
        unclipped.gradient = it->second;
      const auto elsewhere = other_stage_of(programs.main, unclipped);
      if (!elsewhere) continue;
      elsewhere_.emplace(p.name, *elsewhere);
      gone_.insert({p.name, p.gradient, unclipped.gradient});
    }
  }

  void run() {
    add_up_norms(rw_, rw_.program().training(), kStageAxis,
                 [&](const std::string& parameter) { return !elsewhere_.contains(parameter); });
    find_state();
    for (Position op = rw_.begin(); op != rw_.end();) op = drop(op) ? rw_.erase(op) : std::next(op);
    std::erase_if(rw_.edit_training().parameters,
                  [&](const auto& p) { return elsewhere_.contains(p.name); });
    for (const std::string& name : gone_)
      if (!rw_.program().var(name).persistable) rw_.erase_var(name);
    for (const auto& [state, owner] : state_) place_on_stage(programs_, state, owner, stage_);
  }

 private:
  // What updates write beside parameters, with the stage that does.
  void find_state() {
    std::map<std::string, std::set<int>> writers;
    for (Position op = rw_.begin(); op != rw_.end(); ++op) {
      if (!op->def->updates_parameters || op->role != Role::kUpdate) continue;
      for (const std::string& parameter : op->in("param")) {
        const auto it = elsewhere_.find(parameter);
        const int owner = it == elsewhere_.end() ? stage_ : it->second;
        for (const Names& names : op->outputs)
          for (const std::string& var : names)
            if (is_state_of_stage(rw_.program().var(var))) writers[var].insert(owner);
      }
    }
    for (const auto& [var, owners] : writers)
      if (owners.size() == 1) state_.emplace(var, *owners.begin());
  }

  // Sharding has given other state to owners inside of stages already.
  static bool is_state_of_stage(const ir::VarInfo& var) {
    const auto owner = ir::owner_of(var);
    return var.persistable && !var.is_parameter && (!owner || owner->group == kStageAxis);
  }

  // Whether the op reads or writes a variable of another stage; then its outputs are such, too.
  bool drop(Position op) {
    bool about = false;
    for (const auto* slots : {&op->inputs, &op->outputs})
      for (const Names& names : *slots)
        for (const std::string& name : names) about = about || gone_.contains(name);
    if (!about) return false;
    for (const Names& names : op->outputs)
      for (const std::string& name : names) {
        const auto state = state_.find(name);
        const bool stays = rw_.program().var(name).persistable &&
                           (state == state_.end() || state->second == stage_);
        if (!stays) gone_.insert(name);
      }
    return true;
  }

  Programs& programs_;
  ir::Rewriter rw_;
  int stage_;
  std::map<std::string, int> elsewhere_;  // parameters, with their stages
  std::set<std::string> gone_;
  std::map<std::string, int> state_;
};

class Pipeline final : public Strategy {
 public:
  std::string_view name() const override { return "pipeline"; }
  Traits traits() const override {
    const char* own = "its workers have parameters of their own, those of a stage must be the same";
    return {.acts = {{Phase::kForward, {"amp", "sync_batch_norm", "tensor_parallel"}},
                     {Phase::kGradients, {"recompute", "tensor_parallel"}},
                     {Phase::kUpdates, {"amp", "lars", "lamb", "sharding"}}},
            .conflicts = {{"gradient_merge",
                           "a pipeline adds up the gradients of micro-batches itself; raise "
                           "pipeline_configs['accumulate_steps'] instead"},
                          {"localsgd", own},
                          {"adaptive_localsgd", own},
                          {"dgc", "its momentum and residuals would be kept for every stage"},
                          {"parameter_server",
                           "servers keep parameters of all stages; use collective mode"}}};
  }
  // micro_batch_size 1: whatever is fed, in equal parts.
  ir::Attrs options() const override {
    return {{"micro_batches", 1}, {"micro_batch_size", 1}, {"schedule", "1F1B"}};
  }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh& mesh) const override {
    if (!s.on("pipeline")) {
      check_arg(stages_of(mesh) == 1, "hybrid_configs.pp_degree is ", stages_of(mesh),
                ", but strategy.pipeline is off; switch it on, or leave the degree at 1");
      return std::nullopt;
    }
    const auto get = [&](const char* field) {
      return s.get(str("pipeline_configs.", field)).as<int64_t>();
    };
    const int64_t old = get("micro_batch"), steps = get("accumulate_steps");
    check_arg(old == 1 || steps == 1 || old == steps, "pipeline_configs: micro_batch is ", old,
              " and accumulate_steps is ", steps,
              "; both are the number of micro-batches, so give one of them");
    return ir::Attrs{{"micro_batches", std::max(old, steps)},
                     {"micro_batch_size", get("micro_batch_size")},
                     {"schedule", s.get("pipeline_configs.schedule_mode")}};
  }

  void validate(const ir::Program& main, const StrategyContext& context) const override {
    const int64_t micro_batches = number(context, "micro_batches");
    const auto schedule = context.options.at("schedule").as<std::string>();
    const int stages = stages_of(context.mesh);
    check_arg(micro_batches >= 1, "pipeline: the option 'micro_batches' is ", micro_batches,
              "; must be at least 1");
    check_arg(number(context, "micro_batch_size") >= 1, "pipeline: micro_batch_size is ",
              number(context, "micro_batch_size"), "; must be at least 1");
    check_arg(schedule_from_name(schedule).has_value(), "pipeline: the schedule is \"", schedule,
              "\"; must be \"1F1B\" or \"F-then-B\"");
    check_arg(schedule != "1F1B" || micro_batches >= stages,
              "pipeline: 1F1B begins with a "
              "micro-batch for each of the ",
              stages, " stages, but there are ", micro_batches,
              "; set pipeline_configs['accumulate_steps'] to ", stages,
              " or more, or schedule_mode to \"F-then-B\"");
    check_arg(std::any_of(
                  main.ops().begin(), main.ops().end(),
                  [&](const ir::Op& op) {
                    return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Names& names) {
                      return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
                        return main.var(name).is_data;
                      });
                    });
                  }),
              "pipeline: the network reads no data, so there is no batch to cut");
  }

  std::vector<std::string> more_groups(const StrategyContext& context) const override {
    const int stages = stages_of(context.mesh);
    if (stages == 1) return {};
    return {kStageAxis, group_of_values(stages)};
  }

  void on_forward(Programs& programs, const StrategyContext& context) const override {
    const int64_t rows = number(context, "micro_batch_size");
    stage_forward(programs.main, {.stages = stages_of(context.mesh),
                                  .micro_batch = rows > 1 ? rows : kExampleRows});
    if (context.mesh.rank() == 0) say_stages(programs.main, context);
  }

  void on_gradients(Programs& programs, const StrategyContext& context) const override {
    ir::training_of(programs.main, name());
    const int64_t rows = number(context, "micro_batch_size");
    unroll(programs,
           {.of = {.stage = stage_of(context.mesh),
                   .stages = stages_of(context.mesh),
                   .micro_batches = static_cast<int>(number(context, "micro_batches"))},
            .schedule = *schedule_from_name(context.options.at("schedule").as<std::string>()),
            .micro_batch_size = rows > 1 ? rows : 0});
  }

  void on_updates(Programs& programs, const StrategyContext& context) const override {
    ir::training_of(programs.main, name());
    if (stages_of(context.mesh) > 1) OwnUpdates(programs, stage_of(context.mesh)).run();
  }

  // This stage computes with what it has, and updates nothing else.
  void check(Phase phase, const ir::Program& main, const StrategyContext& context) const override {
    if (phase != Phase::kUpdates || stages_of(context.mesh) == 1) return;
    const int stage = stage_of(context.mesh);
    for (const ir::Op& op : main.ops())
      for (const auto* slots : {&op.inputs, &op.outputs})
        for (const Names& names : *slots)
          for (const std::string& name : names) {
            const ir::Placement& p = main.var(name).placement;
            FLEETX_CHECK(!p.is_owned() || p.axis != kStageAxis || p.owner == stage,
                         ir::describe(op), "is on stage ", stage, " and uses '", name,
                         "', which stage ", p.owner, " has");
          }
  }

 private:
  static void say_stages(const ir::Program& main, const StrategyContext& context) {
    const int stages = stages_of(context.mesh);
    std::vector<double> bytes(static_cast<size_t>(stages));
    std::vector<int> ops(static_cast<size_t>(stages));
    std::set<std::string> seen;
    for (const ir::Op& op : main.ops()) {
      if (op.stage == kAnyStage) continue;
      ++ops[static_cast<size_t>(op.stage)];
      for (const Names& names : op.inputs)
        for (const std::string& name : names)
          if (main.var(name).is_parameter && seen.insert(name).second)
            bytes[static_cast<size_t>(op.stage)] += ir::bytes_of(main.var(name).type);
    }
    std::string text;
    for (int s = 0; s < stages; ++s)
      text += str(s > 0 ? "; " : "", "stage ", s, ": ", ops[static_cast<size_t>(s)], " ops, ",
                  bytes[static_cast<size_t>(s)] / (1 << 20), " MiB of parameters");
    log::info("pipeline", number(context, "micro_batches"), " micro-batches, ",
              context.options.at("schedule").as<std::string>(), "; ", text);
  }
};

FLEETX_STRATEGY(pipeline, Pipeline);

// Where the framework cuts. Fewer workers have a part of the batch then, and the stages of a
// pipeline must be fed the same: who allows it feeds them so. More micro-batches wait less, but
// compute with smaller ones.
std::vector<Choice> choices(const Mesh& mesh) {
  std::vector<Choice> all;
  for (const int64_t stages : {2, 4, 8})
    for (const int64_t micro_batches : {2 * stages, 4 * stages})
      if (mesh.world() % stages == 0)
        all.push_back({str("pipeline of ", stages, " stages, ", micro_batches, " micro-batches"),
                       {{"pipeline", true},
                        {"hybrid_configs.pp_degree", stages},
                        {"pipeline_configs.accumulate_steps", micro_batches}}});
  return all;
}
FLEETX_CHOICES(pipeline, Effect::kLearning, choices);

}  // namespace

int stages_in(const ir::Program& main) { return guarded_stages(main); }

}  // namespace fleetx::strategies
