#include "fleetx/strategies/replace_updates.h"

#include <algorithm>

#include "fleetx/base/log.h"
#include "fleetx/ir/rewriter.h"

namespace fleetx::strategies {
namespace {

using Slots = std::vector<std::pair<std::string, ir::Names>>;

Slots slots_of(const std::vector<ir::SlotDef>& defs, const std::vector<ir::Names>& names) {
  Slots slots;
  for (size_t i = 0; i < defs.size(); ++i)
    if (!names[i].empty()) slots.emplace_back(defs[i].name, names[i]);
  return slots;
}

void check_update(const ir::Program& main, const ir::Op& op, const Replacement& r) {
  check_arg(op.type() == r.from, "strategy.", r.strategy, " gives ", r.from,
            " a learning rate per layer, but the optimizer is ", op.type(), "; ", r.remedy);
  for (size_t i = 0; i < op.in("grad").size(); ++i)
    check_arg(main.var(op.in("grad")[i]).type.kind == ir::VarKind::kDense, "strategy.", r.strategy,
              " needs the norm of a whole gradient, but that of '", op.in("param")[i],
              "' has only the rows of a batch; make that embedding with is_sparse=False");
}

}  // namespace

void replace_updates(ir::Program& main, const Replacement& r) {
  ir::Rewriter rw(main);
  for (auto op = rw.begin(); op != rw.end();) {
    const auto old = op++;
    if (!old->def->updates_parameters || old->role != ir::Role::kUpdate) continue;
    check_update(main, *old, r);
    const ir::OpDef& def = ir::op_def(r.to);
    ir::Rewriter::NewOp update{.type = r.to,
                               .inputs = slots_of(old->def->inputs, old->inputs),
                               .outputs = slots_of(old->def->outputs, old->outputs),
                               .attrs = r.attrs,
                               .role = old->role,
                               .name = old->name,
                               .guard = old->guard,
                               .loc = old->loc};
    for (const auto& [name, value] : old->attrs)
      if (def.find_attr(name) != nullptr) update.attrs.emplace(name, value);
    ir::Floats decays;
    for (const std::string& param : old->in("param")) decays.push_back(r.decays(param) ? 1.0 : 0.0);
    update.attrs.insert_or_assign("with_decay", decays);
    rw.insert(old, update);
    rw.erase(old);
  }
}

void warn_of_unused_exclusions(
    const ir::Program& main, const StrategyContext& context, std::string_view setting,
    std::string_view part,
    const std::function<bool(const std::string& param, const std::string& entry)>& fits) {
  const auto entries = context.options.at("exclude_from_weight_decay").as<ir::Strings>();
  for (const std::string& entry : entries)
    check_arg(!entry.empty(), setting,
              ": exclude_from_weight_decay has an empty name, which fits "
              "every parameter; remove it, or set the decay to 0");
  if (context.mesh.rank() != 0) return;
  const std::vector<const ir::VarInfo*> parameters = main.parameters();
  for (const std::string& entry : entries)
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&](const ir::VarInfo* p) { return fits(p->name, entry); }))
      log::warning(setting, "exclude_from_weight_decay has '", entry, "', but no parameter has a ",
                   "name with this ", part, ", so it excludes nothing; the first parameter is '",
                   parameters.empty() ? "" : parameters.front()->name, "'");
}

}  // namespace fleetx::strategies
