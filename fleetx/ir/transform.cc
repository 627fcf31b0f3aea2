#include "fleetx/ir/transform.h"

#include <algorithm>
#include <set>

#include "fleetx/ir/rewriter.h"

namespace fleetx::ir {

Program clone_for_test(const Program& program) {
  Program out = program;
  Rewriter rw(out);
  rw.edit_training() = {};
  for (auto op = rw.begin(); op != rw.end();) {
    if (op->role != Role::kForward) {
      op = rw.erase(op);
      continue;
    }
    if (op->def->find_attr("is_test") != nullptr) rw.set_attr(op, "is_test", true);
    ++op;
  }
  rw.drop_unused_vars();
  return out;
}

Program prune(const Program& program, const Names& targets) {
  Program out = program;
  Rewriter rw(out);
  rw.edit_training() = {};
  std::set<std::string, std::less<>> wanted;
  for (const std::string& name : targets) wanted.insert(out.var(name).name);

  for (auto op = rw.end(); op != rw.begin();) {
    --op;
    const bool needed =
        std::any_of(op->outputs.begin(), op->outputs.end(), [&](const Names& names) {
          return std::any_of(names.begin(), names.end(),
                             [&](const std::string& n) { return wanted.contains(n); });
        });
    if (!needed) {
      op = rw.erase(op);
      continue;
    }
    for (const Names& names : op->inputs) wanted.insert(names.begin(), names.end());
    if (!op->guard.empty()) wanted.insert(op->guard);
  }
  // Data and parameters that nothing reads any more are not part of the pruned program.
  Names gone;
  for (const VarInfo* v : out.vars())
    if (!wanted.contains(v->name) && (v->is_data || v->is_parameter)) gone.push_back(v->name);
  for (const std::string& name : gone)
    if (std::none_of(out.ops().begin(), out.ops().end(),
                     [&](const Op& op) { return op.writes(name); }))
      rw.erase_var(name);
  rw.drop_unused_vars(targets);
  return out;
}

Program with_fed(const Program& program, const Names& variables) {
  Program out = program;
  Rewriter rw(out);
  for (const std::string& name : variables) {
    const VarInfo info = out.var(name);
    check_arg(!info.persistable, "'", name, "' lives from step to step and is no input");
    for (auto op = rw.begin(); op != rw.end(); ++op) {
      for (size_t slot = 0; slot < op->outputs.size(); ++slot) {
        Names names = op->outputs[slot];
        if (std::find(names.begin(), names.end(), name) == names.end()) continue;
        VarInfo unread = info;
        unread.name = rw.fresh_name(name + "_unread");
        rw.add_var(unread);
        std::replace(names.begin(), names.end(), name, unread.name);
        rw.set_outputs(op, op->def->outputs[slot].name, names);
      }
    }
    rw.edit_var(name).is_data = true;
  }
  return out;
}

}  // namespace fleetx::ir
