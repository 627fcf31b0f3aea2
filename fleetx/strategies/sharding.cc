// sharding: the workers divide what each of them would keep whole (Rajbhandari et al., 2020). Every
// parameter has an owner (see owners.h), the only one that updates it and keeps its state.
//
// Stage 1, the state. Gradients are averaged as ever; what owners have updated they send:
//
//   before (data parallel, 2 workers)         after: worker 0, who owns w2
//     backward:                                 backward:
//     [dw2] = all_reduce_wait([dw2], t1)        [dw1] = all_reduce_wait([dw1], t2)
//     [dw1] = all_reduce_wait([dw1], t2)
//     update:                                   update:
//                                               [dw2] = all_reduce_wait([dw2], t1)
//     [w2], [v2] = momentum([w2], ...)          [w2], [v2] = momentum([w2], ...)
//     [w1], [v1] = momentum([w1], ...)          [w2], s2 = broadcast_start([w2]) {root=0}
//                                               [w1], s1 = broadcast_start([w1]) {root=1}
//                                               [w2] = broadcast_wait([w2], s2)
//                                               [w1] = broadcast_wait([w1], s1)
//
// Stage 2, gradients too. Only the owner gets the average; its own gradient is gone from the memory
// of a worker as soon as that has been sent. Two buckets are on their way at most:
//
//   dw1 = fc_grad(x, w1, dh)                  dw1 = fc_grad(x, w1, dh)
//                                             [dw1@SENT], t = reduce_start([dw1]) {root=1}
//                                             [dw1@OWN] = reduce_wait([dw1@SENT], t)
//
// Stage 3, parameters too: see gather_parameters.h. Nothing is sent after the update.
//
// From stage 2 on a global norm is that of what a worker owns, added up over the workers; norms of
// whole parameters (lars, lamb) need nothing, because whole parameters are owned.
//
// degree: so many neighbours divide; several such groups are copies of each other (the hybrid with
// data parallel). Then owners average over the copies, too: all_reduce over the group "dp%degree".
//
// Moves, with n workers: stage 1 the gradients (all_reduce) and the parameters once; stage 2 half
// of the former; stage 3 the parameters twice, for forward and backward. What is divided takes 1/n
// of its memory, up to the size of one parameter. What gradient_merge adds up stays whole.
// Checkpoints hold whole variables.
#include <algorithm>
#include <cmath>
#include <map>

#include "fleetx/base/log.h"
#include "fleetx/ir/infer.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/uniform.h"
#include "fleetx/strategies/averaging.h"
#include "fleetx/strategies/choices.h"
#include "fleetx/strategies/data_parallel.h"
#include "fleetx/strategies/divided_norms.h"
#include "fleetx/strategies/gather_parameters.h"
#include "fleetx/strategies/gradient_order.h"
#include "fleetx/strategies/owners.h"
#include "fleetx/strategies/pipeline_unroll.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

using ir::Names;
using ir::Role;
using Parameters = std::vector<ir::Training::Parameter>;
using Position = ir::Rewriter::Position;

constexpr int kDefaultDegree = 8;  // of sharding_configs: nobody has chosen it
constexpr double kDefaultMB = 32;

int64_t stage_of(const StrategyContext& context) {
  return context.options.at("stage").as<int64_t>();
}
int degree_of(const StrategyContext& context) {
  const auto degree = context.options.at("degree").as<int64_t>();
  return degree == 0 ? context.mesh.size(kDataAxis) : static_cast<int>(degree);
}
bool is_hybrid(const StrategyContext& context) {
  return degree_of(context) != context.mesh.size(kDataAxis);
}
// Those who divide.
std::string group_of(const StrategyContext& context) {
  return is_hybrid(context) ? str(kDataAxis, "/", degree_of(context)) : kDataAxis;
}
// Those who own the same.
std::string copies_of(const StrategyContext& context) {
  return str(kDataAxis, "%", degree_of(context));
}

Owners owners_of(const ir::Program& main, const StrategyContext& context) {
  const std::string group = group_of(context);
  const Mesh& mesh = context.mesh;
  return {main,
          main.training().parameters,
          {.group = group,
           .rank = mesh.coordinate(group),
           .ranks = degree_of(context),
           .stage = mesh.has(kStageAxis) ? mesh.coordinate(kStageAxis) : 0}};
}

bool is_dense(const ir::Program& main, const std::string& var) {
  return main.var(var).type.kind == ir::VarKind::kDense;
}

// Parameters in their order, cut where `most` bytes are reached.
std::vector<Parameters> segments_of(const ir::Program& main, const Parameters& parameters,
                                    double most) {
  std::vector<Parameters> segments;
  double bytes = HUGE_VAL;
  for (const ir::Training::Parameter& p : parameters) {
    if (bytes >= most) {
      segments.emplace_back();
      bytes = 0;
    }
    segments.back().push_back(p);
    bytes += ir::bytes_of(main.var(p.name).type);
  }
  return segments;
}

// ---- stage 2: gradients go to owners ----

class ReduceToOwners {
 public:
  ReduceToOwners(Programs& programs, const StrategyContext& context)
      : rw_(programs.main),
        context_(context),
        owners_(owners_of(programs.main, context)),
        guard_(agree_on_ready(rw_)) {}

  void run() {
    const ir::Uniform averaged(rw_.program(), kDataAxis);
    std::vector<Gradient> gradients;
    for (const ir::Training::Parameter& p : rw_.program().training().parameters)
      if (is_dense(rw_.program(), p.gradient) && !averaged.holds(p.gradient))
        gradients.push_back(
            gradient_of(rw_.program(), p, rw_.program().var(p.gradient).type.dtype));
    sort_by_time(rw_, gradients);
    for (const auto& bucket : buckets_of(gradients, context_.options)) reduce(bucket);
    while (!under_way_.empty()) finish_first(rw_.end());
  }

 private:
  struct Call {
    std::string type;
    // What is sent, while it is under way, and what comes of it: each is written once, so that the
    // planner may give them the same memory.
    Names from, under_way, to;
    std::string ticket;
    ir::Attrs attrs;
  };
  using Calls = std::vector<Call>;

  void reduce(const std::vector<Gradient>& bucket) {
    const Position place = behind(rw_, names_of(bucket), guard_);
    if (under_way_.size() == kMostUnderWay) finish_first(place);
    Calls calls;
    for (int owner = 0; owner < owners_.ranks(); ++owner) {
      Call call{"reduce", {}, {}, {}, "", {}};
      for (const Gradient& g : bucket) {
        if (owners_.of(g.param) != owner) continue;
        call.from.push_back(g.name);
        call.under_way.push_back(rw_.fresh_name(g.name + "@SENT"));
        call.to.push_back(rw_.fresh_name(g.name + "@OWN"));
        parameter_of_[call.to.back()] = g.param;
      }
      if (call.from.empty()) continue;
      call.attrs = {{"group", owners_.group()}, {"op", "average"}, {"root", owner}};
      start(call, place);
      calls.push_back(std::move(call));
    }
    under_way_.push_back(std::move(calls));
  }

  void start(Call& call, Position place) {
    call.ticket = rw_.fresh_name(call.type + "_ticket");
    rw_.insert(place, {.type = call.type + "_start",
                       .inputs = {{"xs", call.from}},
                       .outputs = {{"out", call.under_way}, {"ticket", {call.ticket}}},
                       .attrs = call.attrs,
                       .role = Role::kBackward,
                       .guard = guard_});
  }
  void wait(const Call& call, Position place) {
    rw_.insert(place, {.type = call.type + "_wait",
                       .inputs = {{"xs", call.under_way}, {"ticket", {call.ticket}}},
                       .outputs = {{"out", call.to}},
                       .attrs = call.attrs,
                       .role = Role::kBackward,
                       .guard = guard_});
  }

  // Waits for the oldest bucket. Its averages are those of this group; owners then average them
  // with the other copies of the group.
  void finish_first(Position place) {
    for (const Call& call : under_way_.front()) {
      wait(call, place);
      const bool own =
          call.attrs.at("root").as<int64_t>() == context_.mesh.coordinate(owners_.group());
      if (own && is_hybrid(context_)) average_copies(call.to);
      for (const std::string& gradient : call.to) {
        const std::string& parameter = parameter_of_.at(gradient);
        ir::set_gradient_owner(rw_.edit_var(gradient), {owners_.group(), owners_.of(parameter)});
        rw_.set_gradient(parameter, gradient);
      }
    }
    under_way_.erase(under_way_.begin());
  }
  void average_copies(const Names& gradients) {
    Call call{"all_reduce", gradients, gradients,
              gradients,    "",        {{"group", copies_of(context_)}, {"op", "average"}}};
    start(call, behind(rw_, gradients));
    wait(call, rw_.end());
  }

  static constexpr size_t kMostUnderWay = 2;

  ir::Rewriter rw_;
  const StrategyContext& context_;
  Owners owners_;
  std::string guard_;
  std::vector<Calls> under_way_;                     // buckets, the oldest first
  std::map<std::string, std::string> parameter_of_;  // of an average
};

// ---- all stages: owners update ----

class DivideUpdates {
 public:
  DivideUpdates(Programs& programs, const StrategyContext& context)
      : programs_(programs),
        rw_(programs.main),
        context_(context),
        training_(programs.main.training()),
        owners_(owners_of(programs.main, context)) {}

  void run() {
    // Of what all workers have, too, each takes its part.
    if (stage_of(context_) >= 2)
      add_up_norms(rw_, training_, owners_.group(),
                   [&](const std::string& parameter) { return owners_.is_own(parameter); });
    const double segment = context_.options.at("segment_MB").as<double>() * (1 << 20);
    Parameters here = training_.parameters;
    std::erase_if(here, [&](const auto& p) { return !owners_.is_here(p.name); });
    if (stage_of(context_) < 3)
      for (const Parameters& part : segments_of(rw_.program(), here, segment)) send_updated(part);
    for (const ir::Training::Parameter& p : training_.parameters) divide_update(p);
    wait_late();
    for (const ir::Rewriter::NewOp& wait : waits_) rw_.append(wait);
    name_steps();
    if (stage_of(context_) == 3)
      gather_parameters(programs_, owners_, {.segment_bytes = segment, .everybody = kDataAxis});
  }

 private:
  // Behind the last update of the segment, whoever makes it: all workers start the same calls in
  // the same order.
  void send_updated(const Parameters& segment) {
    Position place = rw_.end(), last = rw_.end();
    for (Position op = rw_.begin(); op != rw_.end(); ++op)
      for (const ir::Training::Parameter& p : segment)
        if (op->role == Role::kUpdate && op->def->updates_parameters && op->writes(p.name))
          last = op;
    FLEETX_CHECK(last != rw_.end(), "no op updates '", segment.front().name, "'");
    place = std::next(last);
    const std::string guard = last->guard;
    for (int owner = 0; owner < owners_.ranks(); ++owner) {
      Names names;
      for (const ir::Training::Parameter& p : segment)
        if (owners_.of(p.name) == owner) names.push_back(p.name);
      for (const Names& one_type : by_dtype(names)) send(one_type, owner, place, guard);
    }
  }
  std::vector<Names> by_dtype(const Names& names) const {
    std::map<DType, Names> parts;
    for (const std::string& name : names) parts[rw_.program().var(name).type.dtype].push_back(name);
    std::vector<Names> out;
    for (auto& [dtype, part] : parts) out.push_back(std::move(part));
    return out;
  }
  void send(const Names& names, int owner, Position place, const std::string& guard) {
    const std::string ticket = rw_.fresh_name("broadcast_ticket");
    const ir::Attrs attrs{{"group", owners_.group()}, {"root", owner}};
    rw_.insert(place, {.type = "broadcast_start",
                       .inputs = {{"xs", names}, {"step", {training_.step}}},
                       .outputs = {{"out", names}, {"ticket", {ticket}}},
                       .attrs = attrs,
                       .role = Role::kUpdate,
                       .guard = guard});
    waits_.push_back({.type = "broadcast_wait",
                      .inputs = {{"xs", names}, {"ticket", {ticket}}},
                      .outputs = {{"out", names}},
                      .attrs = attrs,
                      .role = Role::kUpdate,
                      .guard = guard});
  }

  // The update and its state stay with the owner.
  void divide_update(const ir::Training::Parameter& p) {
    const ir::VarInfo& info = rw_.program().var(p.name);
    check_arg(!ir::differs_along(info, kDataAxis), "sharding: the parameter '", p.name, "' is ",
              info.placement,
              "; what another strategy has divided between the same workers cannot be divided "
              "again: switch one of them off");
    const Position update = rw_.update_of(p.name);
    FLEETX_CHECK(update->def->updates_parameters && update->in("param").size() == 1,
                 ir::describe(*update), "is not the update of one parameter");
    for (const Names& names : update->outputs)
      for (const std::string& var : names)
        if (var != p.name && rw_.program().var(var).persistable) give_to_owner(var, p.name);
    if (!owners_.is_own(p.name)) rw_.erase(update);
    // Nobody here updates it: pipeline drops the rest of it.
    for (ir::Training::Parameter& mine : rw_.edit_training().parameters)
      if (mine.name == p.name && !owners_.is_here(p.name)) mine.learning_rate = "";
  }
  void give_to_owner(const std::string& state, const std::string& parameter) {
    place_with_owner(programs_, state, owners_.place(parameter));
    if (!owners_.is_own(parameter)) forget_first_value(programs_.startup, state);
  }

  // For errors: the gradients were on their way before there was a counter.
  void name_steps() {
    for (Position op = rw_.begin(); op != rw_.end(); ++op)
      if (op->type() == "reduce_start") rw_.set_inputs(op, "step", {training_.step});
  }

  // A gradient is waited for where it is applied, so that the parameters of one bucket are on their
  // way to the others while the next is applied.
  void wait_late() {
    for (Position op = rw_.begin(); op != rw_.end();) {
      const Position wait = op++;
      if (wait->type() != "all_reduce_wait" || wait->role != Role::kBackward) continue;
      const Names names = wait->out("out");
      const Position use = std::find_if(op, rw_.end(), [&](const ir::Op& other) {
        return std::any_of(names.begin(), names.end(), [&](const auto& name) {
          return other.reads(name) || other.writes(name);
        });
      });
      if (use != rw_.end() && use != op && use->def->updates_parameters) rw_.move(wait, use);
    }
  }

  Programs& programs_;
  ir::Rewriter rw_;
  const StrategyContext& context_;
  const ir::Training training_;
  Owners owners_;
  std::vector<ir::Rewriter::NewOp> waits_;
};

// ---- settings ----

// Who has chosen a degree, and where: hybrid_configs, else sharding_configs. 0: all workers.
int64_t degree_in(const Settings& s, int workers) {
  const auto number = [&](const char* field) { return s.get(field).as<int64_t>(); };
  if (const int64_t hybrid = number("hybrid_configs.sharding_degree"); hybrid != 1) return hybrid;
  const int64_t copies = number("sharding_configs.dp_degree");
  int64_t degree = number("sharding_configs.sharding_degree");
  const int64_t old = number("sharding_configs.sharding_group_size");
  if (degree == kDefaultDegree && s.on("sharding_configs.hybrid_dp")) degree = old;
  if (degree == kDefaultDegree && copies == 1 && !s.on("sharding_configs.hybrid_dp")) return 0;
  check_arg(
      workers % degree == 0 && (copies == 1 || degree * copies == workers),
      "sharding: sharding_configs has the sharding_degree ", degree, " and the dp_degree ", copies,
      ", but ", workers,
      " workers share the batch: the degree must divide them, and the product be their number");
  return degree;
}

void refuse_settings(const Settings& s) {
  for (const char* field : {"mp_degree", "pp_degree"})
    check_arg(s.get(str("sharding_configs.", field)).as<int64_t>() == 1, "sharding_configs.", field,
              " is ", s.get(str("sharding_configs.", field)), "; set hybrid_configs.", field,
              " instead");
  check_arg(s.get("sharding_configs.gradient_merge_acc_step").as<int64_t>() == 1,
            "sharding_configs.gradient_merge_acc_step is not 1; use strategy.gradient_merge, which "
            "works with sharding");
  check_arg(
      s.get("sharding_configs.sharding_segment_strategy").as<std::string>() ==
          "segment_broadcast_MB",
      "sharding_configs.sharding_segment_strategy is \"segment_anchors\", which FleetX does not "
      "have; use \"segment_broadcast_MB\"");
}

class Sharding final : public Strategy {
 public:
  std::string_view name() const override { return "sharding"; }
  Traits traits() const override {
    const char* own =
        "their workers have parameters of their own, of which nobody can be the owner";
    return {.acts = {{Phase::kGradients,
                      {"recompute", "amp", "gradient_merge", "pipeline", "tensor_parallel"}},
                     {Phase::kUpdates, {"amp", "lars", "lamb"}}},
            .groups = {kDataAxis},
            .conflicts = {{"localsgd", own},
                          {"adaptive_localsgd", own},
                          {"dgc",
                           "dgc keeps momentum and residuals of every worker, which cannot be "
                           "divided; switch one of them off"}},
            .needs = {{"data_parallel", "its workers are those that divide the work"}}};
  }
  // degree 0: all workers divide.
  ir::Attrs options() const override {
    ir::Attrs options = default_fuse_options();
    options.emplace("stage", 1);
    options.emplace("degree", 0);
    options.emplace("segment_MB", kDefaultMB);
    return options;
  }

  // One worker has nobody to share with.
  bool acts_in(const Mesh& mesh) const override { return mesh.size(kDataAxis) > 1; }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh& mesh) const override {
    const auto hybrid = s.get("hybrid_configs.sharding_degree").as<int64_t>();
    check_arg(s.on("sharding") || hybrid == 1, "hybrid_configs.sharding_degree is ", hybrid,
              ", but strategy.sharding is off; switch it on, or leave the degree at 1");
    if (!s.on("sharding")) return std::nullopt;
    refuse_settings(s);
    const ir::Attr stage = s.get("sharding_configs.stage");
    check_stage(stage.as<int64_t>());
    check_arg(stage.as<int64_t>() == 1 || !s.on("fp16_allreduce"),
              "strategies 'sharding' with stage ", stage,
              " and 'fp16_allreduce' cannot be used together: its gradients go to their owners in "
              "32 bits; use stage 1, or switch fp16_allreduce off");
    const int workers = mesh.size(kDataAxis);
    ir::Attrs options = fuse_options(s);
    options.emplace("stage", stage);
    options.emplace("degree", workers == 1 ? 0 : degree_in(s, workers));
    const ir::Attr segment = s.get("sharding_configs.segment_broadcast_MB");
    options.emplace("segment_MB", segment.as<double>() == kDefaultMB
                                      ? s.get("sharding_configs.fuse_broadcast_MB")
                                      : segment);
    return options;
  }

  void validate(const ir::Program&, const StrategyContext& context) const override {
    check_fuse_options(name(), context.options);
    check_stage(stage_of(context));
    const double segment = context.options.at("segment_MB").as<double>();
    check_arg(std::isfinite(segment) && segment > 0, "sharding: the option 'segment_MB' is ",
              segment, "; it is the size of a segment, so it must be positive");
    const int workers = context.mesh.size(kDataAxis), degree = degree_of(context);
    check_arg(degree >= 1 && workers % degree == 0, "sharding: the degree is ", degree,
              ", which does not divide the ", workers,
              " workers that share the batch; choose one that does, or leave it for all of them");
  }

  std::vector<std::string> more_groups(const StrategyContext& context) const override {
    std::vector<std::string> groups;
    if (is_hybrid(context)) groups.push_back(group_of(context));
    if (is_hybrid(context) && stage_of(context) >= 2) groups.push_back(copies_of(context));
    // Checkpoints bring together what owners of all stages have.
    if (context.mesh.has(kStageAxis) && context.mesh.size(kStageAxis) > 1)
      groups.push_back(str(kStageAxis, "+", group_of(context)));
    return groups;
  }

  void on_gradients(Programs& programs, const StrategyContext& context) const override {
    ir::training_of(programs.main, name());
    if (degree_of(context) > 1 && stage_of(context) >= 2) ReduceToOwners(programs, context).run();
  }

  void on_updates(Programs& programs, const StrategyContext& context) const override {
    ir::training_of(programs.main, name());
    if (degree_of(context) == 1) return;
    DivideUpdates(programs, context).run();
    if (context.mesh.rank() == 0) say_shares(programs.main, context);
  }

  // This worker updates what it owns, gets the rest, and keeps no other state.
  void check(Phase phase, const ir::Program& main, const StrategyContext& context) const override {
    if (phase != Phase::kUpdates || degree_of(context) == 1) return;
    const Owners owners = owners_of(main, context);
    for (const ir::Op& op : main.ops()) {
      if (!op.def->updates_parameters || op.role != Role::kUpdate) continue;
      for (const std::string& parameter : op.in("param"))
        FLEETX_CHECK(owners.is_own(parameter), ir::describe(op), "updates '", parameter,
                     "', which rank ", owners.of(parameter), " of '", owners.group(), "' owns");
    }
  }

 private:
  static void check_stage(int64_t stage) {
    check_arg(
        stage >= 1 && stage <= 3, "sharding: the stage is ", stage,
        "; must be 1 (the optimizer's state is divided), 2 (gradients, too) or 3 (parameters, "
        "too)");
  }

  static void say_shares(const ir::Program& main, const StrategyContext& context) {
    const Owners owners = owners_of(main, context);
    const auto [least, most] = std::minmax_element(owners.loads().begin(), owners.loads().end());
    double all = 0;
    for (const double bytes : owners.loads()) all += bytes;
    log::info("sharding", "stage ", stage_of(context), ": ", main.training().parameters.size(),
              " parameters of ", all / (1 << 20), " MiB are owned by ", owners.ranks(),
              " workers, ", *least / (1 << 20), " to ", *most / (1 << 20), " MiB each");
  }
};

FLEETX_STRATEGY(sharding, Sharding);

// By all workers, as long as they are few: parameters are owned whole, and calls are as many as
// owners. Else by neighbours, as hosts and racks have them.
std::vector<Choice> choices(const Mesh& mesh) {
  constexpr int kFew = 64;
  const int workers = mesh.size(kDataAxis);
  std::vector<int> degrees;
  if (workers > 1 && workers <= kFew) degrees.push_back(workers);
  for (const int degree : {8, kFew})
    if (degree < workers && workers % degree == 0) degrees.push_back(degree);
  std::vector<Choice> all;
  for (const int degree : degrees)
    for (const int64_t stage : {1, 2, 3}) {
      Choice choice{str("sharding stage ", stage),
                    {{"sharding", true}, {"sharding_configs.stage", stage}}};
      if (degree != workers) {
        choice.name += str(" by ", degree);
        choice.settings.emplace_back("hybrid_configs.sharding_degree", degree);
      }
      all.push_back(std::move(choice));
    }
  return all;
}
FLEETX_CHOICES(sharding, Effect::kSame, choices);

}  // namespace
}  // namespace fleetx::strategies
