// tensor_parallel: the ranks along mp divide the layers that the user has split (nn/parallel.h);
// the program has their parts and what they send each other already. In a program that has none of
// these, layers that say how they may be divided become such (divide_layers.h): those of BERT and
// the Transformer. This makes the rest right:
//
//   before                                    after (2 ranks along mp)
//     startup:                                  startup:
//     w@WHOLE = uniform()                       w@WHOLE = uniform()
//                                               [w@WHOLE] = broadcast([w@WHOLE]) {group="mp"}
//     w = group_part(w@WHOLE)                   w = group_part(w@WHOLE)
//     v = uniform()                             v = uniform()
//                                               [v] = broadcast([v]) {group="mp"}
//     update: (clip by global norm)             update:
//     n = squared_l2_norm([dw, dv])             n@PARTS = squared_l2_norm([dw])
//                                               [n@PARTS] = all_reduce([n@PARTS]) {group="mp"}
//                                               n@SAME = squared_l2_norm([dv])
//                                               n = sum([n@SAME, n@PARTS])
//
// What is drawn for values that the ranks divide (dropout between a layer by columns and one by
// rows) is drawn by each rank for itself; all else is drawn alike. Parameters that are not divided
// have the same gradient on all ranks, which is checked: where one is used by a layer between those
// that are split, it would get a part of its gradient only.
//
// Moves four bytes per step beside what the layers move.
#include <algorithm>
#include <map>
#include <set>

#include "fleetx/ir/builder.h"
#include "fleetx/ir/divided.h"
#include "fleetx/ir/owned.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/uniform.h"
#include "fleetx/strategies/choices.h"
#include "fleetx/strategies/divide_layers.h"
#include "fleetx/strategies/state.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

using ir::kModelAxis;
using ir::Names;
using ir::Role;
using Position = ir::Rewriter::Position;

bool is_divided(const ir::VarInfo& var) {
  return var.placement.is_sharded() && var.placement.axis == kModelAxis;
}

bool is_of_split_layer(const ir::Op& op) {
  return op.def->find_attr("group") != nullptr && op.def->find_attr("ranks") != nullptr &&
         op.attr<std::string>("group") == kModelAxis;
}

class TensorParallel final : public Strategy {
 public:
  std::string_view name() const override { return "tensor_parallel"; }
  Traits traits() const override {
    return {.acts = {{Phase::kForward},
                     {Phase::kGradients, {"recompute", "gradient_merge"}},
                     {Phase::kUpdates, {"sharding", "pipeline"}}},
            .groups = {kModelAxis},
            .conflicts = {
                {"lars", "it needs the norms of whole parameters"},
                {"lamb", "it needs the norms of whole parameters"},
                {"dgc", "ranks would choose other elements of gradients that are the same"},
                {"localsgd", "parameters of its workers are their own, and cannot be divided, too"},
                {"adaptive_localsgd", "ranks would choose different numbers of steps"},
                {"parameter_server", "servers keep whole parameters"}}};
  }

  // Follows from the mesh. The switch of the same name must say nothing else.
  std::optional<ir::Attrs> requested(const Settings& s, const Mesh& mesh) const override {
    const int ranks = mesh.has(kModelAxis) ? mesh.size(kModelAxis) : 1;
    if (s.on("tensor_parallel")) {
      const auto degree = s.get("tensor_parallel_configs.tensor_parallel_degree").as<int64_t>();
      check_arg(degree == ranks, "tensor_parallel: tensor_parallel_degree is ", degree,
                ", but the mesh of the job has mp_degree ", ranks,
                "; set hybrid_configs.mp_degree to ", degree, ", too");
      check_arg(s.get("tensor_parallel_configs.tensor_init_seed").as<int64_t>() == -1,
                "tensor_parallel: tensor_init_seed is set, but first values are those of the whole "
                "layers, which follow from the seed of the program; set that (paddle.seed)");
    }
    if (ranks == 1) return std::nullopt;
    return ir::Attrs{};
  }

  void validate(const ir::Program& main, const StrategyContext& context) const override {
    const int ranks = context.mesh.size(kModelAxis);
    bool any = has_divisible_layers(main);
    for (const ir::Op& op : main.ops()) {
      if (!is_of_split_layer(op)) continue;
      check_arg(op.attr<int64_t>("ranks") == ranks, ir::describe(op), "num_partitions is ",
                op.attr<int64_t>("ranks"), ", but mp_degree is ", ranks,
                "; give both the same value");
      any = true;
    }
    check_arg(any, "tensor_parallel: mp_degree is ", ranks,
              ", but no layer of the program is split, so that ", ranks,
              " ranks would compute the same; split layers (paddle.distributed.split with "
              "num_partitions=",
              ranks, ") or set hybrid_configs.mp_degree to 1");
  }

  void on_forward(Programs& programs, const StrategyContext& context) const override {
    const auto& ops = programs.main.ops();
    if (std::none_of(ops.begin(), ops.end(), is_of_split_layer))
      divide_layers(programs, context.mesh.size(kModelAxis));
  }

  void on_gradients(Programs& programs, const StrategyContext&) const override {
    ir::Rewriter rw(programs.main);
    place_merged(programs);
    ir::Uniform same(programs.main, kModelAxis, ir::Uniform::Feeds::kSame);
    check_arg(same.diverging().empty(), "tensor_parallel: the state '",
              same.diverging().empty() ? "" : *same.diverging().begin(),
              "' would get different values on the ranks of '", kModelAxis,
              "': a layer between those that are split keeps it; put that layer before them or "
              "behind them");
    check_gradients(programs.main, same);
    std::set<const ir::Op*> own;
    same.walk([&](const ir::Op& op, const auto& uniform) {
      const auto differs = [&](const std::string& x) { return !uniform.contains(x); };
      for (const Names& names : op.inputs)
        if (op.def->draws_per_sample && std::any_of(names.begin(), names.end(), differs))
          own.insert(&op);
    });
    for (Position op = rw.begin(); op != rw.end(); ++op)
      if (own.contains(&*op)) {
        auto axes = op->attr<ir::Strings>("axes");
        axes.emplace_back(kModelAxis);
        rw.set_attr(op, "axes", axes);
      }
  }

  void on_updates(Programs& programs, const StrategyContext&) const override {
    ir::Rewriter rw(programs.main);
    const ir::Training& training = ir::training_of(programs.main, name());
    for (Position op = rw.begin(); op != rw.end(); ++op) {
      if (op->role != Role::kUpdate) continue;
      check_norms_of_parts(programs.main, *op);
      if (op->type() == "squared_l2_norm") op = join_norms(rw, training, op);
    }
    share_first_values(programs.startup);
  }

 private:
  // What another strategy adds up of the gradient of a part is a part too.
  static void place_merged(Programs& programs) {
    const ir::Program& main = programs.main;
    const ir::Uniform same(main, kModelAxis, ir::Uniform::Feeds::kSame);
    for (const ir::Training::Parameter& p : main.training().parameters) {
      const ir::VarInfo& part = main.var(p.name);
      for (const std::string& state : same.diverging())
        if (is_divided(part) && state.starts_with(ir::grad_name(p.name) + "@") &&
            main.var(state).type.shape == part.type.shape)
          place_state(programs, state, part.placement);
    }
  }

  static void check_gradients(const ir::Program& main, const ir::Uniform& same) {
    for (const ir::Training::Parameter& p : main.training().parameters)
      check_arg(
          is_divided(main.var(p.name)) || same.holds(p.gradient),
          "tensor_parallel: the parameter '", p.name,
          "' is whole on every rank, but is used where ranks have different values, so that "
          "its gradients would differ: split that layer too, or use it behind a layer by rows "
          "or one with gather_out=True");
  }

  // Of a part they would be other numbers than of the whole.
  static void check_norms_of_parts(const ir::Program& main, const ir::Op& op) {
    const bool of_one =
        op.type() == "clip_by_norm" || op.type() == "lamb" || op.type() == "lars_momentum";
    if (!of_one) return;
    for (const ir::Training::Parameter& p : main.training().parameters)
      check_arg(!is_divided(main.var(p.name)) || !(op.writes(p.name) || op.writes(p.gradient)),
                "tensor_parallel: ", op.type(), " takes a norm of '", p.name,
                "', of which every rank has a part only; use a clip by global norm, and an "
                "optimizer without norms of parameters (sgd, momentum, adam)");
  }

  // The norm of everything: of what is divided the sum over the ranks, of all else one rank's.
  static Position join_norms(ir::Rewriter& rw, const ir::Training& training, Position op) {
    Names parts, whole;
    for (const std::string& gradient : op->in("xs")) {
      const ir::Training::Parameter* p = training.find_gradient(gradient);
      FLEETX_CHECK(p != nullptr, ir::describe(*op), "reads '", gradient,
                   "', which is applied to no parameter");
      (is_divided(rw.program().var(p->name)) ? parts : whole).push_back(gradient);
    }
    if (parts.empty()) return op;
    const std::string norm = op->out("out").front(), guard = op->guard;
    const std::string of_parts = rw.fresh_name(norm + "@PARTS");
    const auto insert = [&](ir::Rewriter::NewOp made) {
      made.role = Role::kUpdate;
      made.guard = guard;
      made.loc = op->loc;
      rw.insert(op, made);
    };
    const auto squared = [&](const Names& xs, const std::string& out) {
      insert({.type = "squared_l2_norm", .inputs = {{"xs", xs}}, .outputs = {{"out", {out}}}});
    };
    squared(parts, of_parts);
    insert({.type = "all_reduce",
            .inputs = {{"xs", {of_parts}}},
            .outputs = {{"out", {of_parts}}},
            .attrs = {{"group", kModelAxis}, {"op", "sum"}}});
    Names all{of_parts};
    if (!whole.empty()) {
      all.insert(all.begin(), rw.fresh_name(norm + "@SAME"));
      squared(whole, all.front());
    }
    const Position sum = rw.insert(op, {.type = "sum",
                                        .inputs = {{"xs", all}},
                                        .outputs = {{"out", {norm}}},
                                        .role = Role::kUpdate,
                                        .guard = guard,
                                        .loc = op->loc});
    rw.erase(op);
    return sum;
  }

  // Ranks may have different seeds: they begin with the values of rank 0. What a constant fills is
  // the same already.
  static void share_first_values(ir::Program& startup) {
    ir::Rewriter rw(startup);
    Names shared;
    std::vector<Position> wholes;  // ops that draw what is divided then
    for (Position op = rw.begin(); op != rw.end(); ++op) {
      if (op->type() == "fill") continue;
      for (const Names& names : op->outputs)
        for (const std::string& name : names) {
          const ir::VarInfo& var = startup.var(name);
          if (name.ends_with(ir::kWholeSuffix))
            wholes.push_back(op);
          else if (var.persistable && !var.placement.is_transient() &&
                   !ir::differs_along(var, kModelAxis))
            shared.push_back(name);
        }
    }
    for (const Position op : wholes) rw.insert(std::next(op), share(op->outputs.front()));
    if (!shared.empty()) rw.append(share(shared));
  }
  static ir::Rewriter::NewOp share(const Names& names) {
    return {.type = "broadcast",
            .inputs = {{"xs", names}},
            .outputs = {{"out", names}},
            .attrs = {{"group", kModelAxis}}};
  }
};

FLEETX_STRATEGY(tensor_parallel, TensorParallel);

// Fewer workers have a part of the batch then, and those that divide layers must be fed the same:
// who allows it feeds them so.
std::vector<Choice> choices(const Mesh& mesh) {
  std::vector<Choice> all;
  for (const int64_t degree : {2, 4, 8})
    if (mesh.world() % degree == 0)
      all.push_back({str("tensor_parallel by ", degree), {{"hybrid_configs.mp_degree", degree}}});
  return all;
}
FLEETX_CHOICES(tensor_parallel, Effect::kLearning, choices);

}  // namespace
}  // namespace fleetx::strategies
