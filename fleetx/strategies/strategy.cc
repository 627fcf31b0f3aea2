#include "fleetx/strategies/strategy.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "fleetx/base/names.h"
#include "fleetx/ir/verifier.h"
#include "fleetx/passes/dump.h"

namespace fleetx::strategies {
namespace {

using Registry = std::map<std::string, std::unique_ptr<Strategy>, std::less<>>;

Registry& registry() {
  static Registry all;
  return all;
}

struct Call {
  const Strategy* strategy;
  Traits traits;
  StrategyContext context;
};
// By name, so that nothing depends on the order in which strategies were asked for.
using Calls = std::map<std::string, Call, std::less<>>;

ir::Attrs complete_options(const Strategy& strategy, const ir::Attrs& given) {
  ir::Attrs options = strategy.options();
  std::vector<std::string> known;
  for (const auto& [name, fallback] : options) known.push_back(name);
  for (const auto& [name, value] : given) {
    const auto it = options.find(name);
    check_arg(it != options.end(), "strategy '", strategy.name(), "' has no option '", name,
              "'; its options are: ", join(known, ", "));
    const ir::AttrType wanted = it->second.type();
    it->second = value;
    check_arg(ir::coerce(it->second, wanted), "strategy '", strategy.name(), "': option '", name,
              "' must be a ", name_of(wanted), ", got ", value);
  }
  return options;
}

Calls look_up(const std::vector<Request>& requested, const StrategyContext& context) {
  Calls calls;
  for (const Request& request : requested) {
    const auto it = registry().find(request.name);
    check_arg(it != registry().end(), "there is no strategy '", request.name,
              "'; the strategies are: ", join(strategy_names(), ", "));
    const Strategy& strategy = *it->second;
    Call call{&strategy, strategy.traits(), context};
    call.context.options = complete_options(strategy, request.options);
    check_arg(calls.emplace(request.name, std::move(call)).second, "strategy '", request.name,
              "' is asked for twice");
  }
  return calls;
}

void check_relations(const Calls& calls, const StrategyContext& context) {
  for (const auto& [name, call] : calls) {
    for (const Relation& r : call.traits.conflicts)
      check_arg(!calls.contains(r.strategy), "strategies '", name, "' and '", r.strategy,
                "' cannot be used together: ", r.reason);
    for (const Relation& r : call.traits.needs)
      check_arg(calls.contains(r.strategy), "strategy '", name, "' needs strategy '", r.strategy,
                "': ", r.reason);
    for (const std::string& axis : call.traits.axes)
      check_arg(context.mesh.has(axis), "strategy '", name, "' works along the mesh axis '", axis,
                "', which this job does not have");
  }
  for (const std::string& name : context.skip)
    check_arg(!registry().contains(name), "strategy '", name,
              "' cannot be skipped, because it changes what the job computes: do not ask for it "
              "instead");
}

// Of those whose predecessors are done, the first by name comes next.
std::vector<const Call*> in_order(const Calls& calls) {
  std::vector<const Call*> order;
  std::set<std::string, std::less<>> done;
  const auto is_ready = [&](const auto& item) {
    const auto& after = item.second.traits.after;
    return !done.contains(item.first) &&
           std::all_of(after.begin(), after.end(), [&](const std::string& name) {
             return done.contains(name) || !calls.contains(name);
           });
  };
  while (order.size() < calls.size()) {
    const auto next = std::find_if(calls.begin(), calls.end(), is_ready);
    if (next == calls.end()) {
      std::vector<std::string> rest;
      for (const auto& [name, call] : calls)
        if (!done.contains(name)) rest.push_back(name);
      FLEETX_CHECK(false, "strategies that each want to run after another: ", join(rest, ", "));
    }
    order.push_back(&next->second);
    done.insert(next->first);
  }
  return order;
}

}  // namespace

RegisterStrategy::RegisterStrategy(std::string name, std::unique_ptr<Strategy> strategy) {
  FLEETX_CHECK(strategy->name() == name, "strategy '", strategy->name(), "' is registered as '",
               name, "'");
  const bool is_new = registry().emplace(name, std::move(strategy)).second;
  FLEETX_CHECK(is_new, "two strategies are named '", name, "'");
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const auto& [name, strategy] : registry()) names.push_back(name);
  return names;
}

std::vector<passes::Report> apply_strategies(ir::Program& main, ir::Program& startup,
                                             const std::vector<Request>& requested,
                                             const StrategyContext& context) {
  const Calls calls = look_up(requested, context);
  check_relations(calls, context);
  const auto order = in_order(calls);
  for (const Call* call : order) call->strategy->validate(main, call->context);
  if (order.empty()) return {};

  // Work on copies: an error half-way leaves the user's programs alone.
  ir::Program new_main = main, new_startup = startup;
  passes::dump(main, context.dump_dir, 0, "program");
  passes::dump(startup, context.dump_dir, 0, "startup");
  std::vector<passes::Report> reports;
  for (const Call* call : order) {
    passes::Report& report = reports.emplace_back();
    report.name = call->strategy->name();
    report.ops_before = new_main.ops().size();
    const uint64_t startup_version = new_startup.version();
    const auto start = std::chrono::steady_clock::now();
    call->strategy->apply(new_main, new_startup, call->context);
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report.ops_after = new_main.ops().size();

    passes::dump(new_main, context.dump_dir, reports.size(), report.name);
    if (new_startup.version() != startup_version)
      passes::dump(new_startup, context.dump_dir, reports.size(), report.name + ".startup");
    const std::string stage = str("after strategy '", report.name, "'");
    ir::verify(new_main, stage);
    ir::verify(new_startup, stage + " (startup)");
    call->strategy->check(new_main, call->context);
  }
  main = std::move(new_main);
  startup = std::move(new_startup);
  return reports;
}

}  // namespace fleetx::strategies
