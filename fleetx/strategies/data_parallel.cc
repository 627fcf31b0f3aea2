// data_parallel: every worker computes gradients of its own part of the batch; all apply their
// average, so that they keep the same parameters. What one worker would do with the whole batch.
//
//   before                                    after (2 workers)
//     backward:                                 backward:
//     dw2, dh = fc_grad(h, w2, dout)            dw2, dh = fc_grad(h, w2, dout)
//     dw1 = fc_grad(x, w1, dh)                  [dw2], t1 = all_reduce_start([dw2], @step@)
//                                               dw1 = fc_grad(x, w1, dh)
//                                               [dw1], t2 = all_reduce_start([dw1], @step@)
//     update:                                   update:
//                                               [dw2] = all_reduce_wait([dw2], t1)
//     [w2] = sgd([w2], [dw2], lr)               [w2] = sgd([w2], [dw2], lr)
//                                               [dw1] = all_reduce_wait([dw1], t2)
//     [w1] = sgd([w1], [dw1], lr)               [w1] = sgd([w1], [dw1], lr)
//
// Gradients that are started together (see buckets.h) lie in one block of memory; it is reduced
// while backward goes on. Sparse gradients are gathered instead: [dt@ALL] = all_gather_rows(dt).
// Startup ends with the values of worker 0 for everybody. Random ops draw for this worker's part of
// the batch. Backward begins with the worker's weight (see data_parallel.h) instead of 1:
// dloss = assign(@worker_weight@). The gradient of a parameter with is_distributed=true is left
// alone.
//
// Moves the bytes of all gradients once per step (sparse: those of all workers' rows).
#include <algorithm>
#include <map>

#include "fleetx/ir/builder.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/strategies/buckets.h"
#include "fleetx/strategies/data_parallel.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

using ir::Names;
using ir::Role;
using Position = ir::Rewriter::Position;

// What backward computes for a parameter, and where.
struct Source {
  std::string grad;
  const ir::VarInfo* param;
  Position last_writer;
};

bool is_local(const ir::VarInfo& param) {
  const auto it = param.attrs.find("is_distributed");
  return it != param.attrs.end() && it->second.as<bool>();
}

// In the order in which backward makes them.
std::vector<Source> gradients_of(ir::Rewriter& rw) {
  std::map<std::string, Position> writers;
  for (Position op = rw.begin(); op != rw.end(); ++op)
    if (op->role == Role::kBackward)
      for (const Names& names : op->outputs)
        for (const std::string& name : names) writers[name] = op;
  std::vector<Source> found;
  for (Position op = rw.begin(); op != rw.end(); ++op) {
    for (const Names& names : op->outputs) {
      for (const std::string& name : names) {
        const auto it = writers.find(name);
        if (it == writers.end() || it->second != op) continue;
        const ir::VarInfo& info = rw.program().var(name);
        const auto of = info.attrs.find("grad_of");
        if (of == info.attrs.end()) continue;
        const ir::VarInfo& param = rw.program().var(of->second.as<std::string>());
        if (!is_local(param)) found.push_back({name, &param, op});
      }
    }
  }
  return found;
}

bool is_sparse(const ir::Program& program, const std::string& var) {
  return program.var(var).type.kind == ir::VarKind::kSparseRows;
}

Position first_update_that_reads(ir::Rewriter& rw, const Names& names) {
  for (Position op = rw.begin(); op != rw.end(); ++op)
    if (op->role == Role::kUpdate &&
        std::any_of(names.begin(), names.end(), [&](auto& name) { return op->reads(name); }))
      return op;
  return rw.end();
}

class DataParallel final : public Strategy {
 public:
  std::string_view name() const override { return "data_parallel"; }
  Traits traits() const override { return {.axes = {kDataAxis}, .after = {"recompute"}}; }
  ir::Attrs options() const override {
    return {{"fuse", true}, {"fuse_size_in_MB", 32}, {"fuse_count", 50}};
  }

  void validate(const ir::Program& main, const StrategyContext& context) const override {
    for (const char* limit : {"fuse_size_in_MB", "fuse_count"})
      check_arg(context.options.at(limit).as<int64_t>() > 0, "data_parallel: the option '", limit,
                "' is ", context.options.at(limit), "; must be positive");
    const auto is_backward = [](const ir::Op& op) { return op.role == Role::kBackward; };
    check_arg(std::any_of(main.ops().begin(), main.ops().end(), is_backward),
              "data_parallel: the program has no backward part");
  }

  void apply(ir::Program& main, ir::Program& startup,
             const StrategyContext& context) const override {
    ir::Rewriter rw(main);
    const std::vector<Source> sources = gradients_of(rw);
    std::vector<Gradient> dense;
    std::map<std::string, Position> writers;
    for (const Source& s : sources) {
      const ir::TensorType& type = main.var(s.grad).type;
      if (is_sparse(main, s.grad)) {
        gather_rows(rw, s, context.mesh.size(kDataAxis));
        continue;
      }
      dense.push_back({s.grad, s.param->name,
                       static_cast<size_t>(type.shape.numel()) * size_of(type.dtype), type.dtype});
      writers.emplace(s.grad, s.last_writer);
    }
    for (const auto& bucket : buckets_of(dense, context.options)) average(rw, bucket, writers);
    for (Position op = rw.begin(); op != rw.end(); ++op)
      if (op->def->random && op->attrs.contains("rank"))
        rw.set_attr(op, "rank", context.mesh.coordinate(kDataAxis));
    weigh_loss(rw, startup);
    share_first_values(startup);
  }

  // Every gradient that an update reads has been reduced.
  void check(const ir::Program& main, const StrategyContext&) const override {
    std::set<std::string> reduced;
    for (const ir::Op& op : main.ops()) {
      if (op.type() == "all_reduce_wait")
        for (const std::string& name : op.out("out")) reduced.insert(name);
      if (op.role != Role::kUpdate) continue;
      for (const Names& names : op.inputs)
        for (const std::string& name : names) {
          const ir::VarInfo& info = main.var(name);
          const auto of = info.attrs.find("grad_of");
          if (of == info.attrs.end() || op.type() == "all_reduce_wait") continue;
          const std::string param = of->second.as<std::string>();
          FLEETX_CHECK(reduced.contains(name) || is_local(main.var(param)), ir::describe(op),
                       "reads '", name, "', which the workers have not averaged");
        }
    }
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

  static void average(ir::Rewriter& rw, const std::vector<Gradient>& bucket,
                      const std::map<std::string, Position>& writers) {
    Names names;
    for (const Gradient& g : bucket) names.push_back(g.name);
    // The op behind the last of those that make them.
    Position place = rw.begin();
    for (Position op = rw.begin(); op != rw.end(); ++op)
      for (const std::string& name : names)
        if (writers.at(name) == op) place = std::next(op);
    const Position update = first_update_that_reads(rw, names);
    const std::string ticket = rw.fresh_name("all_reduce_ticket");
    std::vector<std::pair<std::string, Names>> inputs{{"xs", names}};
    if (rw.program().find(ir::kStepVar) != nullptr)
      inputs.emplace_back("step", Names{std::string(ir::kStepVar)});
    rw.insert(place, {.type = "all_reduce_start",
                      .inputs = inputs,
                      .outputs = {{"out", names}, {"ticket", {ticket}}},
                      .attrs = {{"group", kDataAxis}},
                      .role = Role::kBackward});
    rw.insert(update, {.type = "all_reduce_wait",
                       .inputs = {{"xs", names}, {"ticket", {ticket}}},
                       .outputs = {{"out", names}},
                       .attrs = {{"group", kDataAxis}},
                       .role = Role::kUpdate});
  }

  static void gather_rows(ir::Rewriter& rw, const Source& s, int ranks) {
    const std::string all = rw.fresh_name(s.grad + "@ALL");
    const Position op =
        rw.insert(std::next(s.last_writer), {.type = "all_gather_rows",
                                             .inputs = {{"x", {s.grad}}},
                                             .outputs = {{"out", {all}}},
                                             .attrs = {{"group", kDataAxis}, {"ranks", ranks}},
                                             .role = Role::kBackward});
    rw.replace_later_uses(std::next(op), s.grad, all);
  }

  static void weigh_loss(ir::Rewriter& rw, ir::Program& startup) {
    const Position seed = std::find_if(rw.begin(), rw.end(), [](const ir::Op& op) {
      return op.role == Role::kBackward && op.type() == "fill" && op.attr<double>("value") == 1.0;
    });
    if (seed == rw.end()) return;
    const std::string& dloss = seed->out("out").front();
    ir::VarInfo weight;
    weight.name = kWeightVar;
    weight.type = rw.program().var(dloss).type;
    weight.persistable = weight.stop_gradient = true;
    rw.add_var(weight);
    rw.insert(seed, {.type = "assign",
                     .inputs = {{"x", {weight.name}}},
                     .outputs = {{"out", {dloss}}},
                     .role = Role::kBackward,
                     .loc = seed->loc});
    ir::Rewriter first(startup);
    ir::Attrs ones = seed->attrs;
    first.add_var(weight);
    first.append({.type = "fill", .outputs = {{"out", {weight.name}}}, .attrs = ones});
    rw.erase(seed);
  }

  static void share_first_values(ir::Program& startup) {
    Names state;
    for (const ir::VarInfo* v : startup.vars())
      if (v->persistable) state.push_back(v->name);
    if (state.empty()) return;
    ir::Rewriter(startup).append({.type = "broadcast_from",
                                  .inputs = {{"xs", state}},
                                  .outputs = {{"out", state}},
                                  .attrs = {{"group", kDataAxis}}});
  }
};

FLEETX_STRATEGY(data_parallel, DataParallel);

}  // namespace
}  // namespace fleetx::strategies
