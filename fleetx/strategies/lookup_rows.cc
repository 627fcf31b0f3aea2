#include "fleetx/strategies/lookup_rows.h"

#include <algorithm>
#include <utility>

namespace fleetx::strategies {
namespace {

using ir::Names;
using Position = ir::Rewriter::Position;

// Whether the op makes a dense gradient that can be rows instead.
bool can_be_rows(const ir::Program& main, const ir::Op& op, int ranks) {
  if (op.type() != "embedding_grad" || !op.guard.empty()) return false;
  const ir::TensorType& table = main.var(op.out("dw").front()).type;
  if (table.kind != ir::VarKind::kDense || table.dtype != DType::kF32) return false;
  const Shape& ids = main.var(op.in("ids").front()).type.shape;
  return ids.known() && ids.numel() * ranks <= table.shape[0];
}

// Makes the lookup's gradient sparse, under a name of its own.
std::string to_rows(ir::Rewriter& rw, Position lookup) {
  const std::string rows = rw.fresh_name(lookup->out("dw").front() + "@ROWS");
  ir::Attrs attrs = lookup->attrs;
  attrs.insert_or_assign("sparse", true);
  rw.insert(lookup, {.type = lookup->type(),
                     .inputs = {{"ids", lookup->in("ids")}, {"dout", lookup->in("dout")}},
                     .outputs = {{"dw", {rows}}},
                     .attrs = attrs,
                     .role = lookup->role,
                     .name = lookup->name,
                     .loc = lookup->loc});
  rw.erase(lookup);
  return rows;
}

// Replaces a lookup's gradient, or the sum of some.
void insert_sum_with_zeros(ir::Rewriter& rw, Position place, Names rows, const ir::Op& like,
                           const std::string& gradient) {
  const ir::TensorType& type = rw.program().var(gradient).type;
  const std::string zeros = rw.fresh_name(gradient + "@ZEROS");
  rw.insert(place, {.type = "fill",
                    .outputs = {{"out", {zeros}}},
                    .attrs = {{"shape", type.shape}, {"dtype", type.dtype}, {"value", 0.0}},
                    .role = like.role,
                    .loc = like.loc});
  rows.insert(rows.begin(), zeros);
  rw.insert(place, {.type = "sum",
                    .inputs = {{"xs", rows}},
                    .outputs = {{"out", {gradient}}},
                    .role = like.role,
                    .name = like.name,
                    .loc = like.loc});
}

}  // namespace

void lookups_to_rows(ir::Rewriter& rw, const std::string& gradient, int ranks) {
  const ir::Program& main = rw.program();
  const Position made = rw.last_writer(gradient);
  if (made == rw.end() || !made->guard.empty()) return;
  if (can_be_rows(main, *made, ranks)) {
    const ir::Op like = *made;
    const Position place = std::next(made);
    return insert_sum_with_zeros(rw, place, {to_rows(rw, made)}, like, gradient);
  }
  if (made->type() != "sum") return;
  Names parts = made->in("xs");
  bool any_dense = false;
  for (std::string& x : parts) {
    const Position lookup = rw.last_writer(x);
    const auto readers =
        std::count_if(rw.begin(), rw.end(), [&](const ir::Op& op) { return op.reads(x); });
    if (lookup != rw.end() && readers == 1 && std::count(parts.begin(), parts.end(), x) == 1 &&
        can_be_rows(main, *lookup, ranks))
      rw.erase_var(std::exchange(x, to_rows(rw, lookup)));
    any_dense = any_dense || main.var(x).type.kind == ir::VarKind::kDense;
  }
  if (any_dense) return rw.set_inputs(made, "xs", parts);
  const ir::Op like = *made;
  insert_sum_with_zeros(rw, rw.erase(made), parts, like, gradient);
}

}  // namespace fleetx::strategies
