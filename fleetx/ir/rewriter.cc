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

void Rewriter::rename_inputs(Position op, std::string_view from, std::string_view to) {
  for (Names& names : op->inputs)
    std::replace(names.begin(), names.end(), std::string(from), std::string(to));
  ++p_.version_;
}

void Rewriter::replace_later_uses(Position first, std::string_view from, std::string_view to) {
  for (; first != p_.ops_.end(); ++first) rename_inputs(first, from, to);
}

VarInfo& Rewriter::edit_var(std::string_view name) {
  (void)p_.var(name);
  ++p_.version_;
  return p_.vars_.find(name)->second.info;
}

void Rewriter::erase_var(std::string_view name) {
  const auto it = p_.vars_.find(name);
  FLEETX_CHECK(it != p_.vars_.end(), "erase_var: no variable '", name, "'");
  p_.vars_.erase(it);
  ++p_.version_;
}

void Rewriter::drop_unused_vars(const Names& keep) {
  std::set<std::string, std::less<>> used(keep.begin(), keep.end());
  for (const Op& op : p_.ops_) {
    for (const Names& names : op.inputs) used.insert(names.begin(), names.end());
    for (const Names& names : op.outputs) used.insert(names.begin(), names.end());
  }
  std::erase_if(p_.vars_, [&](const auto& item) {
    const VarInfo& info = item.second.info;
    return !info.is_data && !info.is_parameter && !used.contains(info.name);
  });
  ++p_.version_;
}

std::string Rewriter::fresh_name(const std::string& base) const {
  std::string name = base;
  for (int i = 1; p_.find(name) != nullptr; ++i) name = str(base, "_", i);
  return name;
}

}  // namespace fleetx::ir
