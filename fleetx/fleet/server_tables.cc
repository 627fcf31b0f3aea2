#include "fleetx/fleet/server_tables.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "fleetx/base/names.h"
#include "fleetx/ops/update_rule.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/strategies/parameter_server.h"

namespace fleetx::fleet {
namespace {

// The op of the startup program that gives a variable its first value.
const ir::Op& first_value_of(const ir::Program& startup, const std::string& var) {
  const auto op =
      std::ranges::find_if(startup.ops(), [&](const ir::Op& o) { return o.writes(var); });
  check_arg(op != startup.ops().end(), "servers: the startup program gives '", var,
            "' no first value");
  return *op;
}

ps::Initializer initializer_of(const ir::Program& startup, const std::string& table) {
  using Kind = ps::Initializer::Kind;
  const ir::Op& op = first_value_of(startup, table);
  if (op.type() == "fill") return {.kind = Kind::kConstant, .a = op.attr<float>("value")};
  const auto random = [&](Kind kind, const char* a, const char* b) -> ps::Initializer {
    const auto seed = static_cast<uint64_t>(op.attr<int64_t>("seed"));
    return {.kind = kind,
            .a = op.attr<float>(a),
            .b = op.attr<float>(b),
            .seed = seed != 0 ? seed : startup.seed()};
  };
  if (op.type() == "uniform") return random(Kind::kUniform, "low", "high");
  if (op.type() == "gaussian") return random(Kind::kNormal, "mean", "std");
  check_arg(op.type() == "truncated_gaussian", ir::describe(op), "the table '", table,
            "' is on the servers, which make a row when it is first asked for; so its initializer "
            "must be constant, uniform, normal or truncated normal, not ",
            op.type());
  return random(Kind::kTruncatedNormal, "mean", "std");
}

// What the user says about when a row is made (sparse_embedding's entry).
template <class T>
T admission(const ir::VarInfo& table, const char* name, T fallback) {
  const auto it = table.attrs.find(name);
  return it == table.attrs.end() ? fallback : it->second.as<T>();
}

std::optional<ps::RowLife> life_of(const ir::VarInfo& table) {
  if (!table.attrs.contains("show")) return std::nullopt;
  const ps::RowLife usual;
  const auto number = [&](const char* name, float fallback) {
    return static_cast<float>(admission(table, name, static_cast<double>(fallback)));
  };
  return ps::RowLife{
      .decay = number("show_click_decay_rate", usual.decay),
      .nonclick_weight = number("nonclk_coeff", usual.nonclick_weight),
      .click_weight = number("click_coeff", usual.click_weight),
      .threshold = number("delete_threshold", usual.threshold),
      .unseen_days = admission(table, "delete_after_unseen_days", usual.unseen_days)};
}

// The op that updates the parameter, and the parameter's place among those of the op.
std::pair<const ir::Op*, size_t> update_of(const ir::Program& main, const std::string& param) {
  for (const ir::Op& op : main.ops()) {
    if (!op.def->updates_parameters) continue;
    const ir::Names& params = op.in("param");
    const auto found = std::ranges::find(params, param);
    if (found != params.end()) return {&op, static_cast<size_t>(found - params.begin())};
  }
  fail(Error::Kind::kInvalidArgument,
       str("servers: no optimizer updates the parameter '", param, "'"));
}

ps::UpdateRulePtr rule_of(const ir::Op& update, size_t index, const ir::Program& startup) {
  ops::FirstStates first;
  for (const optim::StateDef& state : optim::optimizer_def(update.type()).states) {
    const ir::Op& fill = first_value_of(startup, update.in(state.slot)[index]);
    FLEETX_CHECK(fill.type() == "fill", ir::describe(fill), "is the first value of a state");
    first.emplace(state.slot, fill.attr<float>("value"));
  }
  return ops::make_update_rule(update, index, first);
}

// The ops that make the loss, a line each, with the parameters that they read. Sizes of batches,
// seeds, names of other variables and what else is computed may differ between workers.
std::string computed(const ir::Program& main, const ir::Training& training) {
  std::set<std::string, std::less<>> read{training.loss};
  const auto is_read = [&](const ir::Names& names) {
    return std::ranges::any_of(names, [&](const std::string& var) { return read.contains(var); });
  };
  std::vector<std::string> lines;
  for (const ir::Op& op : main.ops() | std::views::reverse) {
    if (op.role != ir::Role::kForward || std::ranges::none_of(op.outputs, is_read)) continue;
    for (const ir::Names& names : op.inputs) read.insert(names.begin(), names.end());
    if (op.type() == "print") continue;  // one worker may show what it computes
    std::string line = str("computes ", op.type());
    const auto act = op.attrs.find("act");
    if (act != op.attrs.end() && !act->second.as<std::string>().empty())
      line += " " + act->second.as<std::string>();
    for (const ir::Names& names : op.inputs)
      for (const std::string& var : names)
        if (training.find(var) != nullptr) line += " " + var;
    lines.push_back(line + "\n");
  }
  std::ranges::reverse(lines);
  return join(lines, "");
}

}  // namespace

ps::JobSpec server_tables(const ir::Program& main, const ir::Program& startup,
                          const ServerConfig& config, int workers, int servers) {
  check(config);
  const bool geo = config.mode == "geo";
  ps::JobSpec job;
  job.workers = workers;
  job.servers = servers;
  job.mode = config.mode == "sync" ? ps::Mode::kSync : ps::Mode::kAsync;
  job.staleness = config.staleness;
  job.delay_compensated = config.dc_asgd;
  job.slicing = {.slice_var_up = config.slice_var_up,
                 .min_block_size = config.min_block_size,
                 .dispatch = config.split_method == "HashName" ? ps::Dispatch::kHashName
                                                               : ps::Dispatch::kRoundRobin};
  const bool alone = config.mode == "alone";
  const std::set<std::string> tables =
      geo || alone ? strategies::declared_tables(main, startup) : strategies::sparse_tables(main);
  std::map<std::string, size_t> of_rate;  // dense tables
  for (const ir::Training::Parameter& p : ir::training_of(main, "servers").parameters) {
    if (alone && !tables.contains(p.name)) continue;
    const ir::VarInfo& var = main.var(p.name);
    const auto [update, index] = update_of(main, p.name);
    const ps::UpdateRulePtr rule = geo ? ps::add_rule() : rule_of(*update, index, startup);
    if (tables.contains(p.name)) {
      job.sparse.push_back({.name = p.name,
                            .dim = var.type.shape[1],
                            .rule = rule,
                            .initializer = initializer_of(startup, p.name),
                            .min_count = admission(var, "min_count", int64_t{1}),
                            .probability = admission(var, "probability", 1.0),
                            .life = life_of(var)});
      check_arg(!geo || (job.sparse.back().min_count == 1 && job.sparse.back().probability == 1),
                "table '", p.name,
                "': in geo workers train their own rows, so the servers cannot decide which are "
                "made (CountFilterEntry, ProbabilityEntry); leave out the entry, or use async");
      continue;
    }
    // Its norm is that of the whole parameter.
    if (!geo && optim::optimizer_def(update->type()).dense_only) job.slicing.slice_var_up = false;
    const auto [place, is_new] =
        of_rate.emplace(geo ? "" : update->in("lr").front(), job.dense.size());
    if (is_new) job.dense.push_back({.name = str("@dense_", job.dense.size(), "@"), .params = {}});
    job.dense[place->second].params.push_back({p.name, var.type.shape, rule});
  }
  if (!alone) job.computed = computed(main, ir::training_of(main, "servers"));
  job.check();
  return job;
}

std::set<std::string> names_of(const std::vector<ps::SparseSpec>& tables) {
  std::set<std::string> names;
  for (const ps::SparseSpec& table : tables) names.insert(table.name);
  return names;
}

std::map<std::string, ps::UpdateRulePtr> own_rules(const ir::Program& main,
                                                   const ir::Program& startup,
                                                   const ServerConfig& config) {
  std::map<std::string, ps::UpdateRulePtr> rules;
  if (config.mode != "geo") return rules;
  for (const std::string& table : strategies::declared_tables(main, startup)) {
    const auto [update, index] = update_of(main, table);
    rules.emplace(table, rule_of(*update, index, startup));
  }
  return rules;
}

}  // namespace fleetx::fleet
