// dce: drops ops whose outputs nobody needs, from the end backwards. Needed are: variables to keep
// (fetch targets), writes to persistable variables, ops with side effects and collectives (ranks
// that fetch different variables still call the same ones), and what those read. Optional outputs
// that nobody reads are taken off the op that stays, so that its kernel does not compute them.
//
//   before (out is fetched)          after
//     a = scale(x) {scale=2.0}         a = scale(x) {scale=2.0}
//     b = scale(a) {scale=3.0}         out = scale(a) {scale=5.0}
//     c = scale(b) {scale=4.0}
//     out = scale(a) {scale=5.0}
#include <algorithm>

#include "fleetx/passes/graph.h"
#include "fleetx/passes/passes.h"

namespace fleetx::passes {
namespace {

// An op that updates a variable in place reads it too; that alone does not make it needed.
bool needed(const Graph& g, Graph::Node op, const std::string& var) {
  if (g.fetched(var) || g.program().var(var).persistable) return true;
  const auto& readers = g.readers(var);
  return std::any_of(readers.begin(), readers.end(), [&](Graph::Node r) { return r != op; });
}

bool needed(const Graph& g, Graph::Node op) {
  if (op->def->side_effect || ir::is_collective(*op)) return true;
  for (const ir::Names& names : op->outputs)
    for (const std::string& name : names)
      if (needed(g, op, name)) return true;
  return false;
}

}  // namespace

// Later ops are gone already when an op is looked at, so the readers that are left are needed ones.
void dce(ir::Program& program, const Options& options) {
  Graph g(program, options.keep);
  for (auto op = g.end(); op != g.begin();) {
    --op;
    if (!needed(g, op)) {
      const auto dead = op++;
      g.erase(dead);
      continue;
    }
    for (size_t s = 0; s < op->outputs.size(); ++s) {
      const ir::SlotDef& slot = op->def->outputs[s];
      if (slot.arity != ir::Arity::kOptional || op->outputs[s].empty()) continue;
      if (!needed(g, op, op->outputs[s].front())) g.set_outputs(op, slot.name, {});
    }
  }
  g.drop_orphans();
}

}  // namespace fleetx::passes
