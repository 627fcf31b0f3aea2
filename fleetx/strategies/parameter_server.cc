// parameter_server: parameters live on servers, which apply the updates; a worker has copies. Rows
// of tables (embeddings with sparse gradients) stay there and are asked for by the ids of a batch.
//
//   before                                         after
//     forward:                                       forward:
//     e = embedding(ids, t) {sparse=true}            [e] = ps_pull_rows([ids]) {tables=["t"], ...}
//     h = fc(e, w)                                   h = fc(e, w)
//     backward:                                      backward:
//     dw, de = fc_grad(e, w, dh)                     dw, de = fc_grad(e, w, dh)
//     dt = embedding_grad(ids, de)                   dt = embedding_grad(ids, de) {any_id=true}
//     update:                                        update:
//     [w], [m] = momentum([w], [dw], [m], lr)        ps_push([dw, dt], [lr, lr]) {names=["w", "t"]}
//     [t], [n] = momentum([t], [dt], [n], lr)        [w] = ps_pull([w])
//
// A table with statistics (ShowClickEntry) also has, before the push,
//
//     ps_count(ids, show, click, _) {table="t"}
//
// Startup loses the table and the optimizer's state, and ends with [w] = ps_init([w]). Clipping
// stays on the worker, learning rates are computed there and travel with the gradients; decay and
// formula are the servers' (fleet/server_tables.h reads them off the program before this).
//
// mode "geo": workers keep tables and updates and exchange what they have learned every k_steps:
//
//     update:                                        update:
//     [w] = sgd([w], [dw], lr)                       [w] = sgd([w], [dw], lr)
//     @step@ = increment(@step@)                     @step@ = increment(@step@)
//                                                    rest = elementwise_mod(@step@, k)
//                                                    due = equal(rest, zero)
//                                                    [w], [w@BASE] =
//                                                        ps_exchange([w], [w@BASE]) if due
//
// Tables that are declared for the servers (is_distributed) are too large for that: a worker has
// only the rows that it has looked up, by id, and trains them by itself. Their lookups and updates
// become ps_pull_rows and ps_push, as above, and ps_exchange stands for their rows, too.
//
// mode "alone": there are no servers, and the tables that are declared for them (is_distributed)
// are kept by this process, by id. Their lookups and updates become the same ops, the rest stays:
//
//     [w], [m] = momentum([w], [dw], [m], lr)        [w], [m] = momentum([w], [dw], [m], lr)
//     [t], [n] = momentum([t], [dt], [n], lr)        ps_push([dt], [lr]) {names=["t"]}
//
// Moves the bytes of all gradients and parameters, and of the rows of the batch, once each way per
// step (geo: those of all parameters, twice each way every k_steps).
#include "fleetx/strategies/parameter_server.h"

#include <algorithm>

#include "fleetx/ir/rewriter.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

using ir::Names;
using ir::Role;
using Position = ir::Rewriter::Position;
using Set = std::set<std::string>;

bool is_lookup_of(const ir::Op& op, const Set& tables) {
  return op.type() == "embedding" && tables.contains(op.in("w").front());
}

// One op for lookups: those given together, at the place of the first one.
void pull_rows(ir::Rewriter& rw, const std::vector<Position>& lookups) {
  if (lookups.empty()) return;
  Names ids, out, tables;
  ir::Ints widths, padding;
  for (const Position op : lookups) {
    ids.push_back(op->in("ids").front());
    out.push_back(op->out("out").front());
    tables.push_back(op->in("w").front());
    widths.push_back(rw.program().var(tables.back()).type.shape[1]);
    padding.push_back(op->attr<int64_t>("padding_idx"));
  }
  const Position first = lookups.front();
  rw.insert(first, {.type = "ps_pull_rows",
                    .inputs = {{"ids", ids}},
                    .outputs = {{"out", out}},
                    .attrs = {{"tables", tables}, {"widths", widths}, {"padding", padding}},
                    .role = first->role,
                    .name = first->name,
                    .guard = first->guard,
                    .loc = first->loc});
  for (const Position op : lookups) rw.erase(op);
}

// Lookups of ids that are fed go to the servers together.
void pull_all_rows(ir::Rewriter& rw, const Set& tables) {
  std::vector<Position> fed;
  std::vector<std::vector<Position>> alone;
  for (Position op = rw.begin(); op != rw.end(); ++op) {
    if (!is_lookup_of(*op, tables)) continue;
    const bool is_fed = rw.program().var(op->in("ids").front()).is_data;
    if (is_fed && op->role == Role::kForward && op->guard.empty())
      fed.push_back(op);
    else
      alone.push_back({op});
  }
  pull_rows(rw, fed);
  for (const auto& one : alone) pull_rows(rw, one);
}

// Of a table with statistics (ShowClickEntry), the names of the variables that say them.
std::string attr_of(const ir::VarInfo& table, const char* name) {
  const auto it = table.attrs.find(name);
  return it == table.attrs.end() ? "" : it->second.as<std::string>();
}

// Lookups of tables with statistics are counted, before the push that tells them to the servers.
void count_uses(ir::Rewriter& rw, const Set& tables) {
  std::vector<ir::Rewriter::NewOp> counts;
  for (Position op = rw.begin(); op != rw.end(); ++op) {
    if (!is_lookup_of(*op, tables)) continue;
    const std::string& table = op->in("w").front();
    const ir::VarInfo& var = rw.program().var(table);
    const std::string show = attr_of(var, "show"), click = attr_of(var, "click");
    if (show.empty()) continue;
    for (const std::string& name : {show, click})
      check_arg(rw.program().find(name) != nullptr, ir::describe(*op), "the statistics of table '",
                table, "' come from the variable '", name,
                "' (ShowClickEntry), which the program does not have; declare it as data");
    const std::string& ids = op->in("ids").front();
    const std::string lengths = ids + "@LENGTHS";
    counts.push_back(
        {.type = "ps_count",
         .inputs = {{"ids", {ids}},
                    {"show", {show}},
                    {"click", {click}},
                    {"lengths", rw.program().find(lengths) == nullptr ? Names{} : Names{lengths}}},
         .attrs = {{"table", table}, {"padding", op->attr<int64_t>("padding_idx")}},
         .role = Role::kUpdate,
         .loc = op->loc});
  }
  for (ir::Rewriter::NewOp& count : counts) rw.append(std::move(count));
}

// The lookups' gradients from which the sparse gradient is made take any id.
void accept_any_id(ir::Rewriter& rw, const std::string& gradient) {
  Set wanted{gradient};
  for (Position op = rw.end(); op != rw.begin();) {
    --op;
    const bool makes = std::any_of(op->outputs.begin(), op->outputs.end(), [&](const Names& names) {
      return std::any_of(names.begin(), names.end(),
                         [&](const std::string& name) { return wanted.contains(name); });
    });
    if (!makes) continue;
    if (op->type() == "embedding_grad") {
      rw.set_attr(op, "any_id", true);
      continue;
    }
    for (const Names& names : op->inputs)
      for (const std::string& name : names)
        if (rw.program().var(name).type.kind == ir::VarKind::kSparseRows) wanted.insert(name);
  }
}

void erase_from_startup(ir::Program& startup, const Set& vars) {
  ir::Rewriter rw(startup);
  for (Position op = rw.begin(); op != rw.end();) {
    const bool makes = std::any_of(vars.begin(), vars.end(),
                                   [&](const std::string& name) { return op->writes(name); });
    op = makes ? rw.erase(op) : std::next(op);
  }
  for (const std::string& name : vars)
    if (startup.find(name) != nullptr) rw.erase_var(name);
}

void start_with(ir::Program& startup, const Names& params) {
  if (params.empty()) return;
  ir::Rewriter(startup).append(
      {.type = "ps_init", .inputs = {{"params", params}}, .outputs = {{"params_out", params}}});
}

class ParameterServer final : public Strategy {
 public:
  std::string_view name() const override { return "parameter_server"; }
  Traits traits() const override {
    const std::string reason =
        "workers with servers do not meet in collectives; start the job without servers for it";
    return {.acts = {{Phase::kForward, {"amp"}}, {Phase::kUpdates}},
            .conflicts = {{"data_parallel", reason},
                          {"localsgd", reason},
                          {"adaptive_localsgd", reason},
                          {"dgc", reason},
                          {"fp16_allreduce", reason},
                          {"sharding", reason},
                          {"sync_batch_norm", reason},
                          {"amp",
                           "each worker finds out by itself whether its gradients are finite, and "
                           "one that skips a step would leave the others waiting"}}};
  }
  ir::Attrs options() const override { return {{"mode", "sync"}, {"k_steps", 0}}; }

  // Follows from the servers of the job, which the settings do not show: fleet/ asks for it.
  std::optional<ir::Attrs> requested(const Settings&, const Mesh&) const override {
    return std::nullopt;
  }

  void validate(const ir::Program&, const StrategyContext& context) const override {
    const auto mode = context.options.at("mode").as<std::string>();
    const auto k = context.options.at("k_steps").as<int64_t>();
    check_arg(mode == "sync" || mode == "async" || mode == "half_async" || mode == "geo" ||
                  mode == "alone",
              "parameter_server: mode is '", mode, "'; known: sync, async, half_async, geo, alone");
    check_arg((mode == "geo") == (k > 0), "parameter_server: k_steps is ", k, " and the mode ",
              mode, "; k_steps > 0 and geo go together");
  }

  void on_forward(Programs& programs, const StrategyContext&) const override {
    ir::Rewriter rw(programs.main);
    for (Position op = rw.begin(); op != rw.end(); ++op)
      if (op->type() == "embedding" && programs.main.var(op->in("w").front()).is_distributed)
        rw.set_attr(op, "sparse", true);
  }

  void on_updates(Programs& programs, const StrategyContext& context) const override {
    const ir::Training training = ir::training_of(programs.main, name());
    if (is_geo(context)) {
      const Set tables = declared_tables(programs.main, programs.startup);
      check_declared(programs.main, tables);
      if (!tables.empty()) move_away(programs, training, tables, tables);
      exchange(programs, ir::training_of(programs.main, name()),
               context.options.at("k_steps").as<int64_t>());
    } else if (is_alone(context)) {
      const Set tables = declared_tables(programs.main, programs.startup);
      if (!tables.empty()) move_away(programs, training, tables, tables);
    } else {
      Set all;
      for (const ir::Training::Parameter& p : training.parameters) all.insert(p.name);
      move_away(programs, training, sparse_tables(programs.main), all);
    }
  }

  // No update is left to the worker, and no lookup of a table.
  void check(Phase phase, const ir::Program& main, const StrategyContext& context) const override {
    if (phase != Phase::kUpdates || is_geo(context) || is_alone(context)) return;
    for (const ir::Op& op : main.ops())
      FLEETX_CHECK(!op.def->updates_parameters, ir::describe(op),
                   "updates parameters that belong to the servers");
  }

 private:
  static bool is_geo(const StrategyContext& context) {
    return context.options.at("mode").as<std::string>() == "geo";
  }
  static bool is_alone(const StrategyContext& context) {
    return context.options.at("mode").as<std::string>() == "alone";
  }

  // Geo: a table that is declared for the servers is kept by id, or it cannot be trained.
  static void check_declared(const ir::Program& main, const Set& tables) {
    for (const ir::Training::Parameter& p : main.training().parameters)
      check_arg(
          !main.var(p.name).is_distributed || tables.contains(p.name),
          "parameter_server: geo: the table '", p.name,
          "' is declared for the servers (is_distributed), which needs an initializer that is "
          "a function of the row (constant, uniform, normal or truncated normal), and no "
          "readers but lookups; use embedding(is_sparse=True)");
  }

  // Lookups of the tables, and the updates of these parameters.
  static void move_away(Programs& programs, const ir::Training& training, const Set& tables,
                        const Set& moved) {
    ir::Rewriter rw(programs.main);
    count_uses(rw, tables);
    pull_all_rows(rw, tables);

    Names grads, lrs, names, dense;
    ir::Ints scaled;
    std::string scale, guard;
    Set gone(tables.begin(), tables.end());  // from startup
    for (const ir::Training::Parameter& p : training.parameters) {
      if (!moved.contains(p.name)) continue;
      const Position update = rw.update_of(p.name);
      const Names& params = update->in("param");
      const auto at = static_cast<size_t>(std::ranges::find(params, p.name) - params.begin());
      FLEETX_CHECK(update->def->updates_parameters && at < params.size(), ir::describe(*update),
                   "is not the update of '", p.name, "'");
      grads.push_back(update->in("grad")[at]);
      lrs.push_back(update->in("lr").front());
      names.push_back(p.name);
      guard = update->guard;
      const bool scales = update->has_in("scale");
      scaled.push_back(scales ? 1 : 0);
      if (scales) {
        check_arg(scale.empty() || scale == update->in("scale").front(),
                  "parameter_server: gradients are clipped by two different norms, '", scale,
                  "' and '", update->in("scale").front(), "'");
        scale = update->in("scale").front();
      }
      if (tables.contains(p.name))
        accept_any_id(rw, grads.back());
      else
        dense.push_back(p.name);
    }
    erase_updates(rw, moved, gone);
    rw.append({.type = "ps_push",
               .inputs = {{"grads", grads},
                          {"lrs", lrs},
                          {"scale", scale.empty() ? Names{} : Names{scale}}},
               .attrs = {{"names", names}, {"scaled", scale.empty() ? ir::Ints{} : scaled}},
               .role = Role::kUpdate,
               .guard = guard});
    if (!dense.empty())
      rw.append({.type = "ps_pull",
                 .inputs = {{"params", dense}},
                 .outputs = {{"params_out", dense}},
                 .role = Role::kUpdate,
                 .guard = guard});
    // Tables are parameters that this program does not have in memory.
    std::erase_if(rw.edit_training().parameters,
                  [&](const auto& p) { return tables.contains(p.name); });
    for (const std::string& table : tables) rw.edit_var(table).is_distributed = true;
    erase_from_startup(programs.startup, gone);
    start_with(programs.startup, dense);
  }

  // The update ops and the states that only they use; these are added to `gone`.
  static void erase_updates(ir::Rewriter& rw, const Set& moved, Set& gone) {
    Set states;
    for (Position op = rw.begin(); op != rw.end();) {
      if (!op->def->updates_parameters || !moved.contains(op->in("param").front())) {
        ++op;
        continue;
      }
      for (size_t s = 0; s < op->outputs.size(); ++s)
        if (op->def->outputs[s].name != "param_out")
          states.insert(op->outputs[s].begin(), op->outputs[s].end());
      op = rw.erase(op);
    }
    for (const ir::Op& op : rw.program().ops())
      std::erase_if(states, [&](const std::string& s) { return op.reads(s) || op.writes(s); });
    for (const std::string& state : states) rw.erase_var(state);
    gone.insert(states.begin(), states.end());
  }

  static void exchange(Programs& programs, const ir::Training& training, int64_t k) {
    ir::Rewriter rw(programs.main), first(programs.startup);
    Names params, bases;
    for (const ir::Training::Parameter& p : training.parameters) {
      ir::VarInfo base;
      base.name = rw.fresh_name(p.name + "@BASE");
      base.type = rw.program().var(p.name).type;
      base.persistable = base.stop_gradient = true;
      base.placement = ir::Placement::transient();
      rw.add_var(base);
      first.add_var(base);
      params.push_back(p.name);
      bases.push_back(base.name);
    }
    start_with(programs.startup, params);
    for (size_t i = 0; i < params.size(); ++i)
      first.append(
          {.type = "assign", .inputs = {{"x", {params[i]}}}, .outputs = {{"out", {bases[i]}}}});

    // The step counter has been incremented: it is the number of steps done.
    const auto number = [&](const char* what, int64_t value) {
      const std::string out = rw.fresh_name(what);
      rw.append({.type = "fill",
                 .outputs = {{"out", {out}}},
                 .attrs = {{"shape", ir::Ints{1}},
                           {"dtype", "i64"},
                           {"value", static_cast<double>(value)}},
                 .role = Role::kUpdate});
      return out;
    };
    const std::string every = number("geo_k", k), zero = number("geo_zero", 0);
    const std::string rest = rw.fresh_name("geo_rest"), due = rw.fresh_name("geo_due");
    rw.append({.type = "elementwise_mod",
               .inputs = {{"x", {training.step}}, {"y", {every}}},
               .outputs = {{"out", {rest}}},
               .role = Role::kUpdate});
    rw.append({.type = "equal",
               .inputs = {{"x", {rest}}, {"y", {zero}}},
               .outputs = {{"out", {due}}},
               .role = Role::kUpdate});
    rw.append({.type = "ps_exchange",
               .inputs = {{"params", params}, {"bases", bases}},
               .outputs = {{"params_out", params}, {"bases_out", bases}},
               .role = Role::kUpdate,
               .guard = due});
  }
};

FLEETX_STRATEGY(parameter_server, ParameterServer);

}  // namespace

namespace {

struct Readers {
  size_t lookups = 0;
  const ir::Op* other = nullptr;  // that reads it in another way
};

Readers readers_of(const ir::Program& main, const std::string& param) {
  Readers readers;
  for (const ir::Op& op : main.ops()) {
    if (op.role == Role::kUpdate || !op.reads(param)) continue;
    const bool looks_up =
        op.type() == "embedding" && op.attr<bool>("sparse") && op.in("ids").front() != param;
    readers.lookups += looks_up ? 1 : 0;
    if (!looks_up) readers.other = &op;
  }
  return readers;
}

bool has_rows(const ir::Program& main, const ir::Training::Parameter& p) {
  return main.var(p.gradient).type.kind == ir::VarKind::kSparseRows;
}

}  // namespace

std::set<std::string> declared_tables(const ir::Program& main, const ir::Program& startup) {
  constexpr std::string_view kByRow[] = {"fill", "uniform", "gaussian", "truncated_gaussian"};
  Set tables;
  for (const ir::Training::Parameter& p : main.training().parameters) {
    const Readers readers = readers_of(main, p.name);
    if (!main.var(p.name).is_distributed || readers.lookups == 0 || readers.other != nullptr ||
        !has_rows(main, p))
      continue;
    const auto first =
        std::ranges::find_if(startup.ops(), [&](const ir::Op& op) { return op.writes(p.name); });
    if (first != startup.ops().end() &&
        std::ranges::find(kByRow, first->type()) != std::end(kByRow))
      tables.insert(p.name);
  }
  return tables;
}

std::set<std::string> strategies_without_tables() {
  Set names;
  for (const Relation& conflict : ParameterServer().traits().conflicts)
    names.insert(conflict.strategy);
  return names;
}

std::set<std::string> sparse_tables(const ir::Program& main) {
  Set tables;
  for (const ir::Training::Parameter& p : main.training().parameters) {
    const ir::VarInfo& var = main.var(p.name);
    const auto [lookups, other] = readers_of(main, p.name);
    const bool sparse = has_rows(main, p);
    if (other != nullptr)
      check_arg(!var.is_distributed && !sparse, ir::describe(*other), "reads the table '", p.name,
                "', of which the servers keep the rows (is_distributed, or a sparse gradient); "
                "only embeddings can look into it: leave out is_distributed and is_sparse, or read "
                "a parameter of its own here");
    if (lookups > 0 && sparse) tables.insert(p.name);
  }
  return tables;
}

void look_up_on_servers(ir::Program& program, const std::set<std::string>& tables) {
  ir::Rewriter rw(program);
  pull_all_rows(rw, tables);
  for (Position op = rw.begin(); op != rw.end(); ++op)
    if (op->type() == "ps_pull_rows") rw.set_attr(op, "is_test", true);
}

}  // namespace fleetx::strategies
