#include "fleetx/ir/rewriter.h"

#include <algorithm>
#include <set>

#include "fleetx/ir/infer.h"

namespace fleetx::ir {

Op Rewriter::make(const NewOp& n) const {
  Op op = p_.make_op(n.type, {}, {}, n.attrs);
  op.role = n.role;
  op.name = n.name;
  op.loc = n.loc;
  op.guard = n.guard;
  op.stage = n.stage;
  for (const auto& [slot, names] : n.inputs)
    op.inputs[static_cast<size_t>(op.def->input_index(slot))] = names;
  for (const auto& [slot, names] : n.outputs)
    op.outputs[static_cast<size_t>(op.def->output_index(slot))] = names;
  normalize_attrs(*op.def, op.attrs, describe(op));
  return op;
}

Rewriter::Position Rewriter::append_unchecked(const NewOp& n) {
  Op op = make(n);
  for (const auto* slots : {&op.inputs, &op.outputs})
    for (const Names& names : *slots)
      for (const std::string& name : names) (void)p_.var(name);
  if (!op.guard.empty()) (void)p_.var(op.guard);
  ++p_.version_;
  return p_.ops_.insert(p_.ops_.end(), std::move(op));
}

Rewriter::Position Rewriter::insert(Position before, const NewOp& n) {
  Op op = make(n);
  const auto types = infer_types(
      op, [&](const std::string& name) -> const TensorType& { return p_.var(name).type; });
  for (size_t s = 0; s < op.outputs.size(); ++s) {
    for (size_t i = 0; i < op.outputs[s].size(); ++i) {
      if (p_.find(op.outputs[s][i]) != nullptr) continue;
      VarInfo info;
      info.name = op.outputs[s][i];
      info.type = types[s][i];
      p_.add_var(std::move(info));
    }
  }
  ++p_.version_;
  return p_.ops_.insert(before, std::move(op));
}

Rewriter::Position Rewriter::erase(Position op) {
  ++p_.version_;
  return p_.ops_.erase(op);
}

void Rewriter::move(Position op, Position before) {
  ++p_.version_;
  p_.ops_.splice(before, p_.ops_, op);
}

void Rewriter::set_attr(Position op, const std::string& name, Attr value) {
  op->attrs.insert_or_assign(name, std::move(value));
  normalize_attrs(*op->def, op->attrs, describe(*op));
  ++p_.version_;
}

void Rewriter::set_inputs(Position op, std::string_view slot, Names names) {
  op->inputs[static_cast<size_t>(op->def->input_index(slot))] = std::move(names);
  ++p_.version_;
}

void Rewriter::set_outputs(Position op, std::string_view slot, Names names) {
  op->outputs[static_cast<size_t>(op->def->output_index(slot))] = std::move(names);
  ++p_.version_;
}

void Rewriter::set_guard(Position op, std::string guard) {
  op->guard = std::move(guard);
  ++p_.version_;
}

void Rewriter::set_stage(Position op, int stage) {
  op->stage = stage;
  ++p_.version_;
}

void Rewriter::rename_inputs(Position op, std::string_view from, std::string_view to) {
  if (op->guard == from) op->guard = to;
  for (Names& names : op->inputs)
    std::replace(names.begin(), names.end(), std::string(from), std::string(to));
  ++p_.version_;
}

void Rewriter::replace_later_uses(Position first, std::string_view from, std::string_view to) {
  for (; first != p_.ops_.end(); ++first) rename_inputs(first, from, to);
  for (Training::Parameter& p : p_.training_.parameters)
    if (p.gradient == from) p.gradient = to;
  if (p_.training_.ready == from) p_.training_.ready = to;
}

VarInfo& Rewriter::edit_var(std::string_view name) {
  (void)p_.var(name);
  ++p_.version_;
  return p_.vars_.find(name)->second.info;
}

void Rewriter::erase_var(std::string_view name) {
  const auto it = p_.vars_.find(name);
  FLEETX_CHECK(it != p_.vars_.end(), "erase_var: no variable '", name, "'");
  FLEETX_CHECK(!p_.training_.mentions(name), "erase_var: the training part names '", name, "'");
  p_.vars_.erase(it);
  ++p_.version_;
}

void Rewriter::drop_unused_vars(const Names& keep) {
  std::set<std::string, std::less<>> used(keep.begin(), keep.end());
  for (const Op& op : p_.ops_) {
    for (const Names& names : op.inputs) used.insert(names.begin(), names.end());
    for (const Names& names : op.outputs) used.insert(names.begin(), names.end());
    used.insert(op.guard);
  }
  std::erase_if(p_.vars_, [&](const auto& item) {
    const VarInfo& info = item.second.info;
    return !info.is_data && !info.is_parameter && !used.contains(info.name) &&
           !p_.training_.mentions(info.name);
  });
  ++p_.version_;
}

Rewriter::Position Rewriter::last_writer(std::string_view name) {
  for (Position op = end(); op != begin();)
    if ((--op)->writes(name)) return op;
  return end();
}

Rewriter::Position Rewriter::first_of(Role role) {
  return std::find_if(begin(), end(), [&](const Op& op) { return op.role == role; });
}

Rewriter::Position Rewriter::update_of(std::string_view parameter) {
  const Position update = std::find_if(begin(), end(), [&](const Op& op) {
    return op.role == Role::kUpdate && op.writes(parameter);
  });
  check_arg(update != end(), "no op of the program updates the parameter '", parameter,
            "'; apply an optimizer first");
  return update;
}

Training& Rewriter::edit_training() {
  ++p_.version_;
  return p_.training_;
}

void Rewriter::set_gradient(std::string_view parameter, std::string gradient) {
  (void)p_.var(gradient);
  for (Training::Parameter& p : edit_training().parameters) {
    if (p.name != parameter) continue;
    p.gradient = std::move(gradient);
    return;
  }
  fail(Error::Kind::kInvalidArgument,
       str("set_gradient: the program does not train '", parameter, "'"));
}

std::string Rewriter::fresh_name(const std::string& base) const {
  std::string name = base;
  for (int i = 1; p_.find(name) != nullptr; ++i) name = str(base, "_", i);
  return name;
}

}  // namespace fleetx::ir
