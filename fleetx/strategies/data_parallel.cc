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
// dt@ALL = all_gather_rows(dt), in two steps, too. A table that is looked up and also used as a
// whole (word embeddings that are tied to the output) has a dense gradient that is ready first and
// rows that are ready last. Each goes on its way when it is ready:
//
//     dense = matmul_grad(...)                  dense = matmul_grad(...)
//                                               [dense], t1 = all_reduce_start([dense], @step@)
//     rows = embedding_grad(ids, dout)          rows = embedding_grad(ids, dout)
//                                               rows@ALL, t2 = all_gather_rows_start(rows, @step@)
//     dt = sum([dense, rows])                   [dense] = all_reduce_wait([dense], t1)
//                                               rows@ALL = all_gather_rows_wait(rows@ALL, t2, rows)
//                                               dt = sum([dense, rows@ALL])
//
// A table whose lookups have dense gradients is no exception: lookup_rows.h makes rows of them
// where that is less.
//
// Startup ends with the values of worker 0 for everybody (zeros need not travel). Random ops draw
// for this worker's part of the batch. Backward begins with the worker's weight (see
// data_parallel.h) instead of 1: dloss = assign(@worker_weight@). State that follows from a
// worker's own batch (statistics of batch norms, counts of metrics) becomes per rank. Parameters
// that are not replicated along dp are left alone, and so are gradients that are the same on all
// workers already, or with their owners, because another strategy has seen to it.
//
// average=false: localsgd averages parameters instead. Only gradients of tables that the user calls
// distributed are still averaged, so that these stay the same on all workers.
//
// Moves the bytes of all gradients once per step (sparse: those of all workers' rows).
#include <algorithm>
#include <map>

#include "fleetx/ir/builder.h"
#include "fleetx/ir/owned.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/uniform.h"
#include "fleetx/strategies/averaging.h"
#include "fleetx/strategies/choices.h"
#include "fleetx/strategies/data_parallel.h"
#include "fleetx/strategies/gradient_order.h"
#include "fleetx/strategies/lookup_rows.h"
#include "fleetx/strategies/owners.h"
#include "fleetx/strategies/state.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

using ir::Names;
using ir::Role;
using Position = ir::Rewriter::Position;

bool is_sparse(const ir::Program& program, const std::string& var) {
  return program.var(var).type.kind == ir::VarKind::kSparseRows;
}

bool is_shared(const ir::VarInfo& info) { return !ir::differs_along(info, kDataAxis); }

class DataParallel final : public Strategy {
 public:
  std::string_view name() const override { return "data_parallel"; }
  Traits traits() const override {
    return {.acts = {{Phase::kGradients,
                      {"recompute", "amp", "gradient_merge", "dgc", "fp16_allreduce", "pipeline",
                       "sharding", "tensor_parallel"}},
                     {Phase::kUpdates, {"dgc", "pipeline", "sharding", "tensor_parallel"}}},
            .groups = {kDataAxis}};
  }
  ir::Attrs options() const override {
    ir::Attrs options = default_fuse_options();
    options.emplace("average", true);
    return options;
  }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh& mesh) const override {
    if (mesh.size(kDataAxis) == 1) return std::nullopt;
    ir::Attrs options = fuse_options(s);
    options.emplace("average", !s.on("localsgd") && !s.on("adaptive_localsgd"));
    return options;
  }

  void validate(const ir::Program&, const StrategyContext& context) const override {
    check_fuse_options(name(), context.options);
  }

  void on_gradients(Programs& programs, const StrategyContext& context) const override {
    const ir::Program& main = programs.main;
    const ir::Training training = ir::training_of(main, name());
    ir::Rewriter rw(programs.main);
    const ir::Uniform averaged(main, kDataAxis);
    const bool any = std::any_of(training.parameters.begin(), training.parameters.end(),
                                 [&](const auto& p) { return averages(main, p, context); });
    const std::string guard = any ? agree_on_ready(rw) : "";
    const int ranks = context.mesh.size(kDataAxis);
    std::vector<Gradient> dense;
    Names sparse;
    std::vector<ir::Rewriter::NewOp> sums;  // of averages
    for (const ir::Training::Parameter& p : training.parameters) {
      if (!averages(main, p, context) || averaged.holds(p.gradient)) continue;
      std::string gradient = p.gradient;
      if (is_sparse(main, gradient)) {
        sparse.push_back(gradient);
        continue;
      }
      lookups_to_rows(rw, gradient, ranks);
      if (const Position sum = sum_with_rows(rw, gradient, ranks); sum != rw.end()) {
        sums.push_back(take_apart(rw, sum));
        const Names& parts = sums.back().inputs.front().second;
        gradient = parts.front();
        sparse.insert(sparse.end(), parts.begin() + 1, parts.end());
        if (ir::Uniform(main, kDataAxis).holds(gradient))
          continue;  // zeros, to which rows are added
      }
      const ir::TensorType& type = main.var(gradient).type;
      dense.push_back({gradient, p.name,
                       static_cast<size_t>(type.shape.numel()) * size_of(type.dtype), type.dtype});
    }
    sort_by_time(rw, dense);
    for (const auto& bucket : buckets_of(dense, context.options))
      average(rw, names_of(bucket), guard);
    std::map<std::string, std::string> gathered;
    for (const std::string& rows : sparse) gathered[rows] = gather_rows(rw, rows, ranks, guard);
    for (ir::Rewriter::NewOp& sum : sums) {
      Names& parts = sum.inputs.front().second;
      std::transform(parts.begin() + 1, parts.end(), parts.begin() + 1,
                     [&](const auto& rows) { return gathered.at(rows); });
      sum.guard = guard;
      rw.append(sum);
    }
    for (Position op = rw.begin(); op != rw.end(); ++op)
      if (op->def->draws_per_sample) {
        ir::Strings axes = op->attr<ir::Strings>("axes");
        axes.insert(axes.begin(), kDataAxis);
        rw.set_attr(op, "axes", axes);
      }
    weigh_loss(rw, programs.startup);
    // State that differs between workers is per rank. Integers are counts, so their sum is kept.
    const ir::Uniform uniform(main, kDataAxis);
    for (const std::string& var : uniform.diverging())
      if (!ir::owner_of(main.var(var)))
        place_state(programs, var,
                    ir::Placement::per_rank(kDataAxis, is_float(main.var(var).type.dtype)
                                                           ? ir::Placement::Resize::kAverage
                                                           : ir::Placement::Resize::kSum));
  }

  void on_updates(Programs& programs, const StrategyContext&) const override {
    const std::string& step = ir::training_of(programs.main, name()).step;
    ir::Rewriter rw(programs.main);
    for (Position op = rw.begin(); op != rw.end(); ++op)
      if (op->type() == "all_reduce_start" || op->type() == "all_gather_rows_start")
        rw.set_inputs(op, "step", {step});
    share_first_values(programs.startup);
  }

  // Every gradient is the same on all workers.
  void check(Phase phase, const ir::Program& main, const StrategyContext& context) const override {
    if (phase != Phase::kGradients) return;
    const ir::Uniform uniform(main, kDataAxis);
    for (const ir::Training::Parameter& p : main.training().parameters)
      FLEETX_CHECK(uniform.holds(p.gradient) || !averages(main, p, context), "the gradient '",
                   p.gradient, "' of '", p.name, "' has not been averaged over the workers");
  }

 private:
  static bool averages(const ir::Program& main, const ir::Training::Parameter& p,
                       const StrategyContext& context) {
    const ir::VarInfo& info = main.var(p.name);
    return is_shared(info) && !has_owner(main, p) &&
           (context.options.at("average").as<bool>() || info.is_distributed);
  }

  // Returns the name of the average.
  static std::string gather_rows(ir::Rewriter& rw, const std::string& grad, int ranks,
                                 const std::string& guard) {
    const std::string all = rw.fresh_name(grad + "@ALL");
    const std::string ticket = rw.fresh_name("all_gather_ticket");
    rw.insert(behind(rw, {grad}, guard), {.type = "all_gather_rows_start",
                                          .inputs = {{"x", {grad}}},
                                          .outputs = {{"out", {all}}, {"ticket", {ticket}}},
                                          .attrs = {{"group", kDataAxis}, {"ranks", ranks}},
                                          .role = Role::kBackward,
                                          .guard = guard});
    const Position wait =
        rw.append({.type = "all_gather_rows_wait",
                   .inputs = {{"x", {all}}, {"ticket", {ticket}}, {"held", {grad}}},
                   .outputs = {{"out", {all}}},
                   .attrs = {{"group", kDataAxis}, {"ranks", ranks}},
                   .role = Role::kBackward,
                   .guard = guard});
    rw.replace_later_uses(std::next(wait), grad, all);
    return all;
  }

  // ---- a gradient that is a sum of a dense part and rows ----

  // The sum that makes the gradient, where its parts can be averaged one by one; else end(). Rows
  // of all workers must not be more than the table: the number of a batch of any size is not known
  // here, then only few workers do this.
  static Position sum_with_rows(ir::Rewriter& rw, const std::string& gradient, int ranks) {
    constexpr int kFewRanks = 8;
    const ir::Program& main = rw.program();
    const Position sum = rw.last_writer(gradient);
    if (sum == rw.end() || sum->type() != "sum" || !sum->guard.empty()) return rw.end();
    const Names& parts = sum->in("xs");
    const auto rows = std::count_if(parts.begin(), parts.end(),
                                    [&](const auto& x) { return is_sparse(main, x); });
    if (rows == 0 || rows == std::ssize(parts)) return rw.end();
    const auto is_used_elsewhere = [&](const std::string& x) {
      const auto& all = main.training().parameters;
      return std::any_of(rw.begin(), rw.end(),
                         [&](const ir::Op& op) { return &op != &*sum && op.reads(x); }) ||
             std::any_of(all.begin(), all.end(), [&](const auto& p) { return p.gradient == x; }) ||
             std::count(parts.begin(), parts.end(), x) > 1;
    };
    for (const std::string& x : parts) {
      const ir::TensorType& type = main.var(x).type;
      const bool too_many = type.kind == ir::VarKind::kSparseRows &&
                            (type.rows < 0 ? ranks > kFewRanks : ranks * type.rows > type.shape[0]);
      if (too_many || is_used_elsewhere(x)) return rw.end();
    }
    return sum;
  }

  // Removes the sum, and returns it with one dense part before the rows.
  static ir::Rewriter::NewOp take_apart(ir::Rewriter& rw, Position sum) {
    Names dense, rows;
    for (const std::string& x : sum->in("xs"))
      (is_sparse(rw.program(), x) ? rows : dense).push_back(x);
    ir::Rewriter::NewOp all{.type = "sum",
                            .inputs = {{"xs", rows}},
                            .outputs = {{"out", sum->out("out")}},
                            .role = sum->role,
                            .name = sum->name,
                            .loc = sum->loc};
    rw.erase(sum);
    std::string one = dense.front();
    if (dense.size() > 1) {
      one = rw.fresh_name(all.outputs.front().second.front() + "@DENSE");
      rw.insert(behind(rw, dense), {.type = "sum",
                                    .inputs = {{"xs", dense}},
                                    .outputs = {{"out", {one}}},
                                    .role = all.role,
                                    .name = all.name,
                                    .loc = all.loc});
    }
    Names& parts = all.inputs.front().second;
    parts.insert(parts.begin(), one);
    return all;
  }

  // ---- places ----

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
    start_state(startup, weight, 1.0);
  }

  // Startup broadcasts first values; variables that start as zeros need no broadcast.
  static void share_first_values(ir::Program& startup) {
    std::map<std::string, bool> zeros;
    for (const ir::Op& op : startup.ops())
      for (const Names& names : op.outputs)
        for (const std::string& name : names)
          zeros[name] = op.type() == "fill" && op.attr<double>("value") == 0;
    Names state;
    for (const ir::VarInfo* v : startup.vars())
      if (v->persistable && !v->placement.is_transient() && is_shared(*v) && !zeros[v->name])
        state.push_back(v->name);
    if (state.empty()) return;
    ir::Rewriter(startup).append({.type = "broadcast",
                                  .inputs = {{"xs", state}},
                                  .outputs = {{"out", state}},
                                  .attrs = {{"group", kDataAxis}}});
  }
};

FLEETX_STRATEGY(data_parallel, DataParallel);

// Sizes of the buckets besides the default, 32 MB: small ones begin to travel earlier, large ones
// are fewer.
std::vector<Choice> choices(const Mesh& mesh) {
  if (mesh.size(kDataAxis) == 1) return {};
  std::vector<Choice> all;
  for (const int64_t size : {4, 16, 128})
    all.push_back({str("buckets of ", size, " MB"), {{"fuse_grad_size_in_MB", size}}});
  return all;
}
FLEETX_CHOICES(data_parallel, Effect::kSame, choices, Matters::kLittle);

}  // namespace
}  // namespace fleetx::strategies
