// update_early: a parameter is updated as soon as its gradient is there and nobody reads the old
// value any more, not at the end of the step. The gradient is then still in cache, and its memory
// serves the next ones.
//
//   before                                     after
//     dw2, dh = fc_grad(h, w2, dout)             dw2, dh = fc_grad(h, w2, dout)
//     dw1 = fc_grad(x, w1, dh)                   [w2] = sgd([w2], [dw2], lr)
//     [w2] = sgd([w2], [dw2], lr)                dw1 = fc_grad(x, w1, dh)
//     [w1] = sgd([w1], [dw1], lr)                [w1] = sgd([w1], [dw1], lr)
//
// An update that needs all gradients (by their global norm) stays where it is.
#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "fleetx/ir/rewriter.h"
#include "fleetx/passes/passes.h"

namespace fleetx::passes {
namespace {

using Position = ir::Rewriter::Position;
using Set = std::unordered_set<std::string>;

bool is_update(const ir::Op& op) {
  return op.def->updates_parameters && op.role == ir::Role::kUpdate;
}

Set names_of(const std::vector<ir::Names>& slots) {
  Set all;
  for (const ir::Names& names : slots) all.insert(names.begin(), names.end());
  return all;
}

bool any_in(const std::vector<ir::Names>& slots, const Set& names) {
  for (const ir::Names& slot : slots)
    for (const std::string& name : slot)
      if (names.contains(name)) return true;
  return false;
}

// The first place where the update could stand as well.
Position earliest(Position begin, Position update) {
  Set reads = names_of(update->inputs);
  const Set writes = names_of(update->outputs);
  if (!update->guard.empty()) reads.insert(update->guard);
  Position place = update;
  while (place != begin) {
    const Position before = std::prev(place);
    if (any_in(before->outputs, reads) || any_in(before->inputs, writes) ||
        writes.contains(before->guard))
      break;
    place = before;
  }
  return place;
}

}  // namespace

void update_early(ir::Program& program, const Options&) {
  ir::Rewriter rw(program);
  for (Position op = rw.begin(); op != rw.end();) {
    const Position update = op++;
    if (!is_update(*update)) continue;
    const Position place = earliest(rw.begin(), update);
    if (place != update) rw.move(update, place);
  }
}

}  // namespace fleetx::passes
