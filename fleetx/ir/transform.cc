#include "fleetx/ir/transform.h"

#include <algorithm>
#include <map>
#include <set>

#include "fleetx/ir/infer.h"
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

Program with_inputs(const Program& program,
                    const std::vector<std::pair<std::string, Shape>>& shapes) {
  Program out = program;
  Rewriter rw(out);
  for (const auto& [name, shape] : shapes) {
    check_arg(out.var(name).is_data, "'", name, "' is no input of the program");
    rw.edit_var(name).type.shape = shape;
  }
  const auto type_of = [&](const std::string& name) -> const TensorType& {
    return out.var(name).type;
  };
  for (const Op& op : out.ops()) {
    const auto types = infer_types(op, type_of);
    for (size_t slot = 0; slot < op.outputs.size(); ++slot)
      for (size_t i = 0; i < op.outputs[slot].size(); ++i)
        if (!out.var(op.outputs[slot][i]).persistable)
          rw.edit_var(op.outputs[slot][i]).type = types[slot][i];
  }
  return out;
}

namespace {

using Renamed = std::map<std::string, std::string, std::less<>>;

const std::string& now(const Renamed& names, const std::string& name) {
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

// A copy of `op` that reads and writes what its variables are called in this step; new names of its
// outputs are added.
void copy_op(Rewriter& rw, Rewriter::Position before, const Op& op, Renamed& names) {
  Rewriter::NewOp copy{.type = op.type(),
                       .attrs = op.attrs,
                       .role = op.role,
                       .name = op.name,
                       .guard = op.guard.empty() ? "" : now(names, op.guard),
                       .loc = op.loc,
                       .stage = op.stage};
  const auto mapped = [&](Names all) {
    for (std::string& name : all) name = now(names, name);
    return all;
  };
  for (size_t i = 0; i < op.inputs.size(); ++i)
    if (!op.inputs[i].empty())
      copy.inputs.emplace_back(op.def->inputs[i].name, mapped(op.inputs[i]));
  Names made;
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    for (const std::string& name : op.outputs[i]) {
      if (rw.program().var(name).persistable) continue;
      names[name] = rw.fresh_name(name);
      made.push_back(name);
    }
    if (!op.outputs[i].empty())
      copy.outputs.emplace_back(op.def->outputs[i].name, mapped(op.outputs[i]));
  }
  rw.insert(before, copy);
  for (const std::string& name : made)
    rw.edit_var(now(names, name)).stop_gradient = rw.program().var(name).stop_gradient;
}

}  // namespace

Program repeat(const Program& program, const Step& step, int64_t times) {
  Program out = program;
  Rewriter rw(out);
  const std::set<std::string, std::less<>> marks(step.ops.begin(), step.ops.end());
  std::vector<Op> body;
  auto behind = rw.end();
  for (auto op = rw.begin(); op != rw.end(); ++op) {
    check_arg(op->role != Role::kBackward, describe(*op),
              "a program is repeated before it has a backward part");
    const bool is_part = std::any_of(op->outputs.begin(), op->outputs.end(), [&](const Names& all) {
      return std::any_of(all.begin(), all.end(),
                         [&](const std::string& name) { return marks.contains(name); });
    });
    if (!is_part) continue;
    body.push_back(*op);
    behind = std::next(op);
  }
  check_arg(body.size() == marks.size(), "the step has ", marks.size(), " ops, the program ",
            body.size(), " of them");
  Renamed names;
  std::vector<Names> collected;
  for (const auto& [result, value] : step.collected) collected.push_back({value});
  for (int64_t t = 1; t < times; ++t) {
    Renamed next;
    for (const auto& [before, after] : step.carried) next[before] = now(names, after);
    for (const Op& op : body) copy_op(rw, behind, op, next);
    names = std::move(next);
    for (size_t i = 0; i < collected.size(); ++i)
      collected[i].push_back(now(names, step.collected[i].second));
  }
  for (size_t i = 0; i < collected.size(); ++i) {
    const auto op = rw.last_writer(step.collected[i].first);
    check_arg(op != rw.end() && (op->type() == "concat" || op->type() == "assign"), "'",
              step.collected[i].first, "' is no result of a concat or assign");
    if (op->type() == "concat")
      rw.set_inputs(op, "xs", collected[i]);
    else
      rw.set_inputs(op, "x", {collected[i].back()});
  }
  return out;
}

}  // namespace fleetx::ir
