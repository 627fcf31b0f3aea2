#include "fleetx/strategies/local_updates.h"

#include <set>

#include "fleetx/ir/stand_in.h"
#include "fleetx/ir/uniform.h"
#include "fleetx/strategies/averaging.h"
#include "fleetx/strategies/data_parallel.h"
#include "fleetx/strategies/state.h"

namespace fleetx::strategies {
namespace {

using ir::Names;

std::string snapshot_of(const std::string& parameter) { return parameter + "@SNAPSHOT"; }

// Startup ends with the first values of worker 0 for everybody; these are the first snapshot.
void add_snapshot(Programs& programs, const std::string& parameter) {
  ir::VarInfo info;
  info.name = snapshot_of(parameter);
  info.type = programs.main.var(parameter).type;
  info.persistable = info.stop_gradient = true;
  ir::set_stand_in(info, parameter);
  ir::Rewriter(programs.main).add_var(info);
  ir::Rewriter startup(programs.startup);
  startup.add_var(info);
  startup.append(
      {.type = "assign", .inputs = {{"x", {parameter}}}, .outputs = {{"out", {info.name}}}});
}

// Single numbers that each worker decides on for itself when it updates, but not those of the
// optimizer.
std::set<std::string> decided_alone(const ir::Program& main) {
  std::set<std::string> names;
  for (const ir::Op& op : main.ops()) {
    if (op.role != ir::Role::kUpdate || op.def->updates_parameters) continue;
    for (const Names& out : op.outputs)
      for (const std::string& name : out) {
        const ir::VarInfo& info = main.var(name);
        if (!info.is_parameter && info.placement.is_per_rank() &&
            info.placement.axis == kDataAxis && info.type.shape.numel() == 1 &&
            info.type.dtype != DType::kBool)
          names.insert(name);
      }
  }
  return names;
}

void all_reduce(UpdateOps& ops, const char* form, Names xs, const std::string& ticket,
                const std::string& sync) {
  const std::string& step = ops.rw().program().training().step;
  const bool starts = std::string_view(form) == "all_reduce_start";
  std::vector<std::pair<std::string, Names>> inputs{{"xs", xs}}, outputs{{"out", xs}};
  inputs.emplace_back(starts ? "step" : "ticket", Names{starts ? step : ticket});
  if (starts) outputs.emplace_back("ticket", Names{ticket});
  ops.op(form, std::move(inputs), std::move(outputs), {{"group", kDataAxis}, {"op", "average"}},
         sync);
}

// At the very end, when all that changes it has run.
void agree_on(Programs& programs, const std::string& var, const std::string& sync) {
  ir::Rewriter(programs.main)
      .append({.type = "all_reduce",
               .inputs = {{"xs", {var}}},
               .outputs = {{"out", {var}}},
               .attrs = {{"group", kDataAxis}, {"op", "min"}},
               .role = ir::Role::kUpdate,
               .guard = sync});
}

}  // namespace

UpdateOps::UpdateOps(Programs& programs, std::string prefix)
    : rw_(programs.main), prefix_(std::move(prefix)), counter_(programs.main.training().step) {}

void UpdateOps::op(const std::string& type, std::vector<std::pair<std::string, Names>> inputs,
                   std::vector<std::pair<std::string, Names>> outputs, ir::Attrs attrs,
                   const std::string& guard) {
  rw_.insert(rw_.last_writer(counter_), {.type = type,
                                         .inputs = std::move(inputs),
                                         .outputs = std::move(outputs),
                                         .attrs = std::move(attrs),
                                         .role = ir::Role::kUpdate,
                                         .guard = guard});
}

std::string UpdateOps::make(const std::string& name, const std::string& type,
                            std::vector<std::pair<std::string, Names>> inputs, ir::Attrs attrs,
                            const std::string& guard) {
  std::string out = rw_.fresh_name(prefix_ + "_" + name);
  op(type, std::move(inputs), {{"out", {out}}}, std::move(attrs), guard);
  return out;
}

std::string UpdateOps::constant(const std::string& name, int64_t value) {
  return make(name, "fill", {},
              {{"shape", ir::Ints{1}}, {"dtype", "i64"}, {"value", static_cast<double>(value)}});
}

std::string UpdateOps::step_number() {
  return make("step", "increment", {{"x", {counter_}}}, {{"value", 1.0}});
}

Traits traits_of_local_updates(std::string_view strategy) {
  return {.acts = {{Phase::kUpdates, {"amp", "data_parallel", "gradient_merge", "lamb", "lars"}}},
          .groups = {kDataAxis},
          .conflicts = {{"dgc", str("dgc compresses gradients that all workers apply, ", strategy,
                                    " lets each apply its own; switch one of them off")},
                        {"fp16_allreduce",
                         "no gradients travel, so that there is nothing to send in 16 bits; "
                         "switch one of them off"}},
          .needs = {{"data_parallel", "its workers are those that train on their own"}}};
}

void check_begin_step(std::string_view strategy, const ir::Attrs& options) {
  const auto step = options.at("begin_step").as<int64_t>();
  check_arg(step >= 0, strategy, ": the option 'begin_step' is ", step,
            "; it is a number of steps, so at least 0");
}

void average_parameters(Programs& programs, UpdateOps& ops, const std::string& sync,
                        const ir::Attrs& options) {
  const ir::Program& main = programs.main;
  const auto diverging = ir::Uniform(main, kDataAxis).diverging();
  std::vector<Gradient> differences;  // they travel as gradients do
  for (const ir::Training::Parameter& p : main.training().parameters) {
    if (!diverging.contains(p.name)) continue;
    add_snapshot(programs, p.name);
    const DType dtype = main.var(p.name).type.dtype;
    const auto elements = static_cast<size_t>(main.var(p.name).type.shape.numel());
    differences.push_back(
        {ops.rw().fresh_name(p.name + "@DIFFERENCE"), p.name, elements * size_of(dtype), dtype});
  }
  const auto buckets = buckets_of(differences, options);
  std::vector<std::string> tickets;
  for (const auto& bucket : buckets) {
    for (const Gradient& d : bucket)
      ops.op("elementwise_sub", {{"x", {snapshot_of(d.param)}}, {"y", {d.param}}},
             {{"out", {d.name}}}, {}, sync);
    tickets.push_back(ops.rw().fresh_name("all_reduce_ticket"));
    all_reduce(ops, "all_reduce_start", names_of(bucket), tickets.back(), sync);
  }
  for (size_t i = 0; i < buckets.size(); ++i) {
    all_reduce(ops, "all_reduce_wait", names_of(buckets[i]), tickets[i], sync);
    for (const Gradient& d : buckets[i]) {
      ops.op("elementwise_sub", {{"x", {snapshot_of(d.param)}}, {"y", {d.name}}},
             {{"out", {d.param}}}, {}, sync);
      ops.op("assign", {{"x", {d.param}}}, {{"out", {snapshot_of(d.param)}}}, {}, sync);
    }
  }
  for (const std::string& var : diverging)
    place_state(programs, var, ir::Placement::per_rank(kDataAxis, ir::Placement::Resize::kAverage));
  for (const std::string& var : decided_alone(main)) agree_on(programs, var, sync);
}

void check_local_updates(const ir::Program& main) {
  const ir::Uniform uniform(main, kDataAxis);
  FLEETX_CHECK(uniform.diverging().empty(), "workers have different values of '",
               *uniform.diverging().begin(), "', which is not per rank");
  for (const ir::Training::Parameter& p : main.training().parameters)
    FLEETX_CHECK(uniform.holds(p.name) || !main.var(p.name).placement.is_per_rank() ||
                     main.find(snapshot_of(p.name)) != nullptr,
                 "'", p.name, "' is never averaged");
}

}  // namespace fleetx::strategies
