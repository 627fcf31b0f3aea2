// data_parallel: every worker computes gradients of its own part of the batch; all apply their
// average, so that they keep the same parameters. What one worker would do with the whole batch.
//
//   before                                    after (2 workers)
//     backward:                                 backward:
//     dw2, dh = fc_grad(h, w2, dout)            dw2, dh = fc_grad(h, w2, dout)
//     dw1 = fc_grad(x, w1, dh)                  [dw2], t1 = all_reduce_start([dw2], @step@)
//                                               dw1 = fc_grad(x, w1, dh)
//                                               [dw1], t2 = all_reduce_start([dw1], @step@)
//                                               [dw2] = all_reduce_wait([dw2], t1)
//                                               [dw1] = all_reduce_wait([dw1], t2)
//     update:                                   update:
//     [w2] = sgd([w2], [dw2], lr)               [w2] = sgd([w2], [dw2], lr)
//     [w1] = sgd([w1], [dw1], lr)               [w1] = sgd([w1], [dw1], lr)
//
// Gradients that are started together (see buckets.h) lie in one block of memory; it is reduced
// while backward goes on. The pass update_early then puts each update right behind its wait, so
// that updates run while later buckets are in flight. Sparse gradients are gathered instead:
// [dt@ALL] = all_gather_rows(dt). Startup ends with the values of worker 0 for everybody. Random
// ops draw for this worker's part of the batch. Backward begins with the worker's weight (see
// data_parallel.h) instead of 1: dloss = assign(@worker_weight@). State that follows from a
// worker's own batch (statistics of batch norms, counts of metrics) becomes per rank. Parameters
// that are not replicated along dp are left alone.
//
// Moves the bytes of all gradients once per step (sparse: those of all workers' rows).
#include <algorithm>

#include "fleetx/ir/builder.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/uniform.h"
#include "fleetx/strategies/buckets.h"
#include "fleetx/strategies/data_parallel.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

using ir::Names;
using ir::Role;
using Position = ir::Rewriter::Position;

bool is_sparse(const ir::Program& program, const std::string& var) {
  return program.var(var).type.kind == ir::VarKind::kSparseRows;
}

bool is_shared(const ir::VarInfo& info) {
  return info.placement.is_replicated() || info.placement.axis != kDataAxis;
}

void place(Programs& programs, const std::string& var, const ir::Placement& placement) {
  ir::Rewriter(programs.main).edit_var(var).placement = placement;
  if (programs.startup.find(var) != nullptr)
    ir::Rewriter(programs.startup).edit_var(var).placement = placement;
}

class DataParallel final : public Strategy {
 public:
  std::string_view name() const override { return "data_parallel"; }
  Traits traits() const override {
    return {.acts = {{Phase::kGradients, {"recompute"}}, {Phase::kUpdates}}, .groups = {kDataAxis}};
  }
  ir::Attrs options() const override {
    return {{"fuse", true}, {"fuse_size_in_MB", 32}, {"fuse_count", 50}};
  }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh& mesh) const override {
    if (mesh.size(kDataAxis) == 1) return std::nullopt;
    return ir::Attrs{
        {"fuse", s.get("fuse_all_reduce_ops")},
        {"fuse_size_in_MB", s.get("fuse_grad_size_in_MB")},
        {"fuse_count", static_cast<int64_t>(s.get("fuse_grad_size_in_TFLOPS").as<double>())}};
  }

  void validate(const ir::Program&, const StrategyContext& context) const override {
    for (const char* limit : {"fuse_size_in_MB", "fuse_count"})
      check_arg(context.options.at(limit).as<int64_t>() > 0, "data_parallel: the option '", limit,
                "' is ", context.options.at(limit), "; must be positive");
  }

  void on_gradients(Programs& programs, const StrategyContext& context) const override {
    const ir::Program& main = programs.main;
    const ir::Training training = ir::training_of(main, name());
    ir::Rewriter rw(programs.main);
    std::vector<Gradient> dense;
    for (const ir::Training::Parameter& p : training.parameters) {
      if (!is_shared(main.var(p.name))) continue;
      if (is_sparse(main, p.gradient)) {
        gather_rows(rw, p.gradient, context.mesh.size(kDataAxis));
        continue;
      }
      const ir::TensorType& type = main.var(p.gradient).type;
      dense.push_back({p.gradient, p.name,
                       static_cast<size_t>(type.shape.numel()) * size_of(type.dtype), type.dtype});
    }
    for (const auto& bucket : buckets_of(dense, context.options)) average(rw, bucket);
    for (Position op = rw.begin(); op != rw.end(); ++op)
      if (op->def->draws_per_sample) rw.set_attr(op, "axes", ir::Strings{kDataAxis});
    weigh_loss(rw, programs.startup);
    // Whole numbers count something, and counts of all workers add up.
    const ir::Uniform uniform(main, kDataAxis);
    for (const std::string& var : uniform.diverging())
      place(programs, var,
            ir::Placement::per_rank(kDataAxis, is_float(main.var(var).type.dtype)
                                                   ? ir::Placement::Resize::kAverage
                                                   : ir::Placement::Resize::kSum));
  }

  void on_updates(Programs& programs, const StrategyContext&) const override {
    const std::string& step = ir::training_of(programs.main, name()).step;
    ir::Rewriter rw(programs.main);
    for (Position op = rw.begin(); op != rw.end(); ++op)
      if (op->type() == "all_reduce_start") rw.set_inputs(op, "step", {step});
    share_first_values(programs.startup);
  }

  // Every gradient is the same on all workers.
  void check(Phase phase, const ir::Program& main, const StrategyContext&) const override {
    if (phase != Phase::kGradients) return;
    const ir::Uniform uniform(main, kDataAxis);
    for (const ir::Training::Parameter& p : main.training().parameters)
      FLEETX_CHECK(uniform.holds(p.gradient) || !is_shared(main.var(p.name)), "the gradient '",
                   p.gradient, "' of '", p.name, "' has not been averaged over the workers");
  }

 private:
  static std::vector<std::vector<Gradient>> buckets_of(const std::vector<Gradient>& gradients,
                                                       const ir::Attrs& options) {
    if (gradients.empty()) return {};
    if (options.at("fuse").as<bool>())
      return make_buckets(
          gradients,
          {.bytes = static_cast<size_t>(options.at("fuse_size_in_MB").as<int64_t>()) << 20,
           .count = static_cast<size_t>(options.at("fuse_count").as<int64_t>())});
    std::vector<std::vector<Gradient>> alone;
    for (const Gradient& g : gradients) alone.push_back({g});
    return alone;
  }

  static void average(ir::Rewriter& rw, const std::vector<Gradient>& bucket) {
    Names names;
    for (const Gradient& g : bucket) names.push_back(g.name);
    // Behind the last of the ops that make them.
    Position place = rw.begin();
    for (Position op = rw.begin(); op != rw.end(); ++op)
      if (std::any_of(names.begin(), names.end(), [&](const auto& n) { return op->writes(n); }))
        place = std::next(op);
    const std::string ticket = rw.fresh_name("all_reduce_ticket");
    rw.insert(place, {.type = "all_reduce_start",
                      .inputs = {{"xs", names}},
                      .outputs = {{"out", names}, {"ticket", {ticket}}},
                      .attrs = {{"group", kDataAxis}, {"op", "average"}},
                      .role = Role::kBackward});
    rw.append({.type = "all_reduce_wait",
               .inputs = {{"xs", names}, {"ticket", {ticket}}},
               .outputs = {{"out", names}},
               .attrs = {{"group", kDataAxis}, {"op", "average"}},
               .role = Role::kBackward});
  }

  static void gather_rows(ir::Rewriter& rw, const std::string& grad, int ranks) {
    const std::string all = rw.fresh_name(grad + "@ALL");
    const Position op = rw.insert(std::next(rw.last_writer(grad)),
                                  {.type = "all_gather_rows",
                                   .inputs = {{"x", {grad}}},
                                   .outputs = {{"out", {all}}},
                                   .attrs = {{"group", kDataAxis}, {"ranks", ranks}},
                                   .role = Role::kBackward});
    rw.replace_later_uses(std::next(op), grad, all);
  }

  static void weigh_loss(ir::Rewriter& rw, ir::Program& startup) {
    const std::string& dloss = rw.program().training().seed;
    const Position seed = rw.last_writer(dloss);
    ir::VarInfo weight;
    weight.name = kWeightVar;
    weight.type = rw.program().var(dloss).type;
    weight.persistable = weight.stop_gradient = true;
    weight.placement = ir::Placement::transient();
    rw.add_var(weight);
    rw.insert(seed, {.type = "assign",
                     .inputs = {{"x", {weight.name}}},
                     .outputs = {{"out", {dloss}}},
                     .role = Role::kBackward,
                     .loc = seed->loc});
    rw.erase(seed);
    ir::Rewriter first(startup);
    first.add_var(weight);
    first.append(
        {.type = "fill",
         .outputs = {{"out", {weight.name}}},
         .attrs = {{"shape", weight.type.shape}, {"dtype", weight.type.dtype}, {"value", 1.0}}});
  }

  static void share_first_values(ir::Program& startup) {
    Names state;
    for (const ir::VarInfo* v : startup.vars())
      if (v->persistable && !v->placement.is_transient() && is_shared(*v)) state.push_back(v->name);
    if (state.empty()) return;
    ir::Rewriter(startup).append({.type = "broadcast",
                                  .inputs = {{"xs", state}},
                                  .outputs = {{"out", state}},
                                  .attrs = {{"group", kDataAxis}}});
  }
};

FLEETX_STRATEGY(data_parallel, DataParallel);

}  // namespace
}  // namespace fleetx::strategies
