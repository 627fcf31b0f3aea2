#include "fleetx/strategies/strategy.h"

#include <algorithm>
#include <array>
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

std::map<std::string, ir::Attrs> strategies_with_switches() {
  std::map<std::string, ir::Attrs> all;
  for (const auto& [name, strategy] : registry())
    if (strategy->traits().own_switch) all.emplace(name, strategy->options());
  return all;
}

std::vector<Request> requests_of(const Settings& settings, const Mesh& mesh) {
  std::vector<Request> requests;
  for (const auto& [name, strategy] : registry())
    if (auto options = strategy->requested(settings, mesh))
      requests.push_back({name, *std::move(options), !strategy->acts_in(mesh)});
  return requests;
}

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, 3> kNames{"forward", "gradients", "updates"};
  return kNames[static_cast<size_t>(phase)];
}

std::optional<ir::Attrs> Strategy::requested(const Settings& settings, const Mesh&) const {
  if (!settings.on(name())) return std::nullopt;
  ir::Attrs given;
  if (traits().own_switch)
    for (const auto& [option, fallback] : options())
      given.emplace(option, settings.get(str(name(), "_configs.", option)));
  return given;
}

void Strategy::on_forward(Programs&, const StrategyContext&) const {
  FLEETX_CHECK(false, "strategy '", name(), "' says that it acts on forward, but does not");
}
void Strategy::on_gradients(Programs&, const StrategyContext&) const {
  FLEETX_CHECK(false, "strategy '", name(), "' says that it acts on gradients, but does not");
}
void Strategy::on_updates(Programs&, const StrategyContext&) const {
  FLEETX_CHECK(false, "strategy '", name(), "' says that it acts on updates, but does not");
}

struct ResolvedStrategies::Call {
  const Strategy* strategy;
  Traits traits;
  StrategyContext context;
  bool idle;

  const Act* act(Phase phase) const {
    if (idle) return nullptr;
    const auto it = std::find_if(traits.acts.begin(), traits.acts.end(),
                                 [&](const Act& a) { return a.phase == phase; });
    return it == traits.acts.end() ? nullptr : &*it;
  }
  void run(Phase phase, Programs& programs) const {
    switch (phase) {
      case Phase::kForward: return strategy->on_forward(programs, context);
      case Phase::kGradients: return strategy->on_gradients(programs, context);
      case Phase::kUpdates: return strategy->on_updates(programs, context);
    }
  }
};

ResolvedStrategies::ResolvedStrategies(const std::vector<Request>& requested,
                                       StrategyContext context)
    : context_(std::move(context)) {
  for (const Request& request : requested) {
    const auto it = registry().find(request.name);
    check_arg(it != registry().end(), "there is no strategy '", request.name,
              "'; the strategies are: ", join(strategy_names(), ", "));
    const Strategy& strategy = *it->second;
    Call call{&strategy, strategy.traits(), context_, request.idle};
    FLEETX_CHECK(!call.traits.acts.empty(), "strategy '", request.name, "' acts in no phase");
    call.context.options = complete_options(strategy, request.options);
    check_arg(calls_.emplace(request.name, std::move(call)).second, "strategy '", request.name,
              "' is asked for twice");
  }
  check_relations();
  for (const Phase phase : {Phase::kForward, Phase::kGradients, Phase::kUpdates})
    (void)in_order(phase);
}

ResolvedStrategies::~ResolvedStrategies() = default;

void ResolvedStrategies::check_relations() const {
  for (const auto& [name, call] : calls_) {
    for (const Relation& r : call.traits.conflicts)
      check_arg(!calls_.contains(r.strategy), "strategies '", name, "' and '", r.strategy,
                "' cannot be used together: ", r.reason);
    if (call.idle) continue;
    for (const Relation& r : call.traits.needs)
      check_arg(calls_.contains(r.strategy), "strategy '", name, "' needs strategy '", r.strategy,
                "': ", r.reason);
    for (const std::string& group : call.traits.groups)
      for (const std::string& axis : Mesh::axes_of(group))
        check_arg(context_.mesh.has(axis), "strategy '", name, "' works along the mesh axis '",
                  axis, "', which this job does not have");
  }
  for (const std::string& name : context_.skip)
    check_arg(!registry().contains(name), "strategy '", name,
              "' cannot be skipped, because it changes what the job computes: do not ask for it "
              "instead");
}

// Of those whose predecessors are done, the first by name comes next.
std::vector<const ResolvedStrategies::Call*> ResolvedStrategies::in_order(Phase phase) const {
  std::map<std::string_view, const Act*> waiting;
  for (const auto& [name, call] : calls_)
    if (const Act* act = call.act(phase)) waiting.emplace(name, act);
  std::vector<const Call*> order;
  while (!waiting.empty()) {
    const auto next = std::find_if(waiting.begin(), waiting.end(), [&](const auto& item) {
      const auto& after = item.second->after;
      return std::none_of(after.begin(), after.end(),
                          [&](const std::string& name) { return waiting.contains(name); });
    });
    if (next == waiting.end()) {
      std::vector<std::string> rest;
      for (const auto& [name, act] : waiting) rest.emplace_back(name);
      FLEETX_CHECK(false, "strategies that each want to run after another on ", name_of(phase),
                   ": ", join(rest, ", "));
    }
    order.push_back(&calls_.find(next->first)->second);
    waiting.erase(next);
  }
  return order;
}

void ResolvedStrategies::validate(const ir::Program& main) const {
  for (const auto& [name, call] : calls_) call.strategy->validate(main, call.context);
}

void ResolvedStrategies::check_optimizer(const ir::Program& main) const {
  for (const auto& [name, call] : calls_) call.strategy->check_optimizer(main);
}

std::vector<std::string> ResolvedStrategies::groups() const {
  std::set<std::string> all;
  for (const auto& [name, call] : calls_) {
    if (call.idle) continue;
    all.insert(call.traits.groups.begin(), call.traits.groups.end());
    for (std::string& group : call.strategy->more_groups(call.context))
      all.insert(std::move(group));
  }
  return {all.begin(), all.end()};
}

void ResolvedStrategies::apply(Phase phase, Programs programs) {
  const auto order = in_order(phase);
  if (order.empty()) return;
  if (reports_.empty()) {
    passes::dump(programs.main, context_.dump_dir, 0, "program");
    passes::dump(programs.startup, context_.dump_dir, 0, "startup");
  }
  for (const Call* call : order) {
    passes::Report& report = reports_.emplace_back();
    report.name = str(call->strategy->name(), ".", name_of(phase));
    report.ops_before = programs.main.ops().size();
    const uint64_t startup_version = programs.startup.version();
    const auto start = std::chrono::steady_clock::now();
    call->run(phase, programs);
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report.ops_after = programs.main.ops().size();

    passes::dump(programs.main, context_.dump_dir, reports_.size(), report.name);
    if (programs.startup.version() != startup_version)
      passes::dump(programs.startup, context_.dump_dir, reports_.size(), report.name + ".startup");
    const std::string stage =
        str("after strategy '", call->strategy->name(), "' on ", name_of(phase));
    ir::verify(programs.main, stage);
    ir::verify(programs.startup, stage + " (startup)");
    call->strategy->check(phase, programs.main, call->context);
  }
}

std::string ResolvedStrategies::to_table() const {
  constexpr size_t kPhaseWidth = 11;
  constexpr size_t kMostText = 100;  // of an option: lists of checkpoints are long
  size_t width = 0;
  for (const auto& [name, call] : calls_) width = std::max(width, name.size());
  std::string table;
  std::set<const Call*> told;  // the options of
  for (const Phase phase : {Phase::kForward, Phase::kGradients, Phase::kUpdates})
    for (const Call* call : in_order(phase)) {
      const std::string_view name = call->strategy->name();
      std::vector<std::string> options;
      const bool again = !told.insert(call).second;
      for (const auto& [option, value] : again ? ir::Attrs{} : call->context.options) {
        std::string text = str(option, "=", value);
        if (text.size() > kMostText) text = text.substr(0, kMostText) + "...";
        options.push_back(std::move(text));
      }
      table += str("\n  ", name_of(phase), std::string(kPhaseWidth - name_of(phase).size(), ' '),
                   name, std::string(width + 2 - name.size(), ' '), join(options, ", "));
    }
  std::vector<std::string> idle;
  for (const auto& [name, call] : calls_)
    if (call.idle) idle.push_back(name);
  if (!idle.empty()) table += str("\n  without effect in a job of this size: ", join(idle, ", "));
  return table;
}

void minimize(Programs programs, ResolvedStrategies& strategies,
              const std::function<void()>& backward, const std::function<void()>& optimize) {
  const ir::Program main = programs.main, startup = programs.startup;
  try {
    strategies.validate(programs.main);
    strategies.apply(Phase::kForward, programs);
    backward();
    strategies.apply(Phase::kGradients, programs);
    optimize();
    strategies.check_optimizer(programs.main);
    strategies.apply(Phase::kUpdates, programs);
  } catch (...) {
    programs.main = main;
    programs.startup = startup;
    throw;
  }
}

}  // namespace fleetx::strategies
