#include "fleetx/autograd/recompute.h"

#include <map>
#include <set>

#include "fleetx/ir/rewriter.h"

namespace fleetx::autograd {
namespace {

using ir::Names;
using ir::Op;
using ir::Rewriter;

std::string copy_name(const std::string& name) { return name + std::string(ir::kRecomputeSuffix); }

class Recompute {
 public:
  Recompute(ir::Program& program, const std::set<std::string>& dropped)
      : rw_(program), dropped_(dropped) {
    for (auto op = rw_.begin(); op != rw_.end(); ++op) {
      if (op->role != ir::Role::kForward) continue;
      for (const Names& names : op->outputs)
        for (const std::string& name : names)
          if (!program.var(name).persistable) producer_[name] = op;
    }
  }

  void run() {
    for (auto op = rw_.begin(); op != rw_.end(); ++op) {
      if (op->role != ir::Role::kBackward || is_copy(*op)) continue;
      std::set<std::string> missing;
      for (const Names& names : op->inputs)
        for (const std::string& name : names)
          if (dropped(name)) missing.insert(name);
      for (const std::string& name : missing) {
        provide(name, op);
        rw_.rename_inputs(op, name, copy_name(name));
      }
    }
  }

 private:
  static bool is_copy(const Op& op) {
    for (const Names& names : op.outputs)
      for (const std::string& name : names)
        if (name.ends_with(ir::kRecomputeSuffix)) return true;
    return false;
  }

  bool dropped(const std::string& name) const {
    return dropped_.contains(name) && producer_.contains(name);
  }

  // Makes the copy of `name` available before `position`, copying its producers back to the
  // nearest values that are kept.
  void provide(const std::string& name, Rewriter::Position position) {
    if (provided_.contains(name)) return;
    const Op& original = *producer_.at(name);
    for (const Names& names : original.inputs)
      for (const std::string& input : names)
        if (dropped(input)) provide(input, position);

    Rewriter::NewOp copy;
    copy.type = original.type();
    copy.name = original.name;
    copy.loc = original.loc;
    copy.role = ir::Role::kBackward;
    copy.guard = original.guard;
    copy.stage = original.stage;
    copy.attrs = original.attrs;
    for (size_t s = 0; s < original.inputs.size(); ++s) {
      Names names = original.inputs[s];
      for (std::string& n : names)
        if (dropped(n)) n = copy_name(n);
      copy.inputs.emplace_back(original.def->inputs[s].name, std::move(names));
    }
    // Every output gets a copy, dropped or not: running statistics then go into a temporary that
    // nobody reads instead of being updated twice.
    for (size_t s = 0; s < original.outputs.size(); ++s) {
      Names names = original.outputs[s];
      for (std::string& n : names) {
        provided_.insert(n);
        n = copy_name(n);
      }
      copy.outputs.emplace_back(original.def->outputs[s].name, std::move(names));
    }
    rw_.insert(position, copy);
  }

  Rewriter rw_;
  const std::set<std::string>& dropped_;
  std::map<std::string, Rewriter::Position> producer_;
  std::set<std::string> provided_;
};

}  // namespace

std::set<std::string> recomputable(const ir::Program& program, const Names& checkpoints) {
  std::set<std::string> kept, out;
  for (const std::string& name : checkpoints) kept.insert(program.var(name).name);
  for (const Op& op : program.ops()) {
    if (op.role != ir::Role::kForward || op.def->side_effect) continue;
    for (const Names& names : op.outputs)
      for (const std::string& name : names)
        if (!kept.contains(name) && !program.var(name).persistable) out.insert(name);
  }
  return out;
}

void recompute(ir::Program& program, const std::set<std::string>& dropped) {
  Recompute(program, dropped).run();
}

}  // namespace fleetx::autograd
