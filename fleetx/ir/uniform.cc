#include "fleetx/ir/uniform.h"

#include <algorithm>

#include "fleetx/base/mesh.h"
#include "fleetx/base/mesh_part.h"
#include "fleetx/ir/owned.h"

namespace fleetx::ir {

Uniform::Uniform(const Program& program, std::string_view group, Feeds feeds)
    : p_(program), axes_(Mesh::axes_of(group)), feeds_(feeds) {
  // State that one step makes different begins the next step different, so that more may follow.
  for (size_t before = SIZE_MAX; before != diverging_.size();) {
    before = diverging_.size();
    walk([](const Op&, const auto&) {});
  }
}

void Uniform::walk(const Visit& visit) {
  uniform_.clear();
  for (const VarInfo* v : p_.vars())
    if ((v->persistable && is_uniform_at_start(*v)) || (v->is_data && feeds_ == Feeds::kSame))
      uniform_.insert(v->name);
  for (const Op& op : p_.ops()) {
    visit(op, uniform_);
    run(op);
  }
}

// Parts of an axis that are not the same count as overlapping, which is the safe side.
bool Uniform::along(std::string_view axis) const {
  return std::any_of(axes_.begin(), axes_.end(),
                     [&](const std::string& own) { return whole_axis(own) == whole_axis(axis); });
}

bool Uniform::is_uniform_at_start(const VarInfo& info) const {
  if (diverging_.contains(info.name) || info.placement.is_transient()) return false;
  return std::none_of(axes_.begin(), axes_.end(),
                      [&](const std::string& axis) { return differs_along(info, axis); });
}

void Uniform::run(const Op& op) {
  const auto uniform = [&](const std::string& name) { return uniform_.contains(name); };
  bool same = op.guard.empty() || uniform(op.guard);
  for (const Names& names : op.inputs)
    same = same && std::all_of(names.begin(), names.end(), uniform);
  if (op.def->draws_per_sample)
    for (const std::string& axis : op.attr<Strings>("axes")) same = same && !along(axis);
  // A collective gives all ranks of its own group the same; one over other axes changes nothing,
  // and one that gives every rank its own part makes them differ.
  bool covers = false;
  if (is_collective(op)) {
    const auto over = Mesh::axes_of(op.attr<std::string>("group"));
    const auto has = [&](std::string_view axis) {
      return std::find(over.begin(), over.end(), axis) != over.end();
    };
    covers = std::all_of(axes_.begin(), axes_.end(), [&](const std::string& axis) {
      return has(axis) || has(whole_axis(axis));
    });
    const bool touches =
        std::any_of(over.begin(), over.end(), [&](const std::string& axis) { return along(axis); });
    if (touches) same = false;
  }
  for (size_t s = 0; s < op.outputs.size(); ++s) {
    const auto& shared = op.def->uniform_outputs;
    const bool given_to_all =
        covers && std::find(shared.begin(), shared.end(), op.def->outputs[s].name) != shared.end();
    for (const std::string& name : op.outputs[s]) {
      // Under a guard that is not uniform some ranks keep the old value.
      if (same || (given_to_all && (op.guard.empty() || uniform(op.guard)))) {
        uniform_.insert(name);
        continue;
      }
      uniform_.erase(name);
      const VarInfo& info = p_.var(name);
      if (info.persistable && is_uniform_at_start(info)) diverging_.insert(name);
    }
  }
}

}  // namespace fleetx::ir
