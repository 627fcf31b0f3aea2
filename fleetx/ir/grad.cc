#include "fleetx/ir/grad.h"

namespace fleetx::ir {

Var Grad::in(std::string_view slot, size_t i) const {
  const Names& names = op_.in(slot);
  return i < names.size() ? Var(&b_, names[i]) : Var();
}

std::vector<Var> Grad::ins(std::string_view slot) const {
  std::vector<Var> out;
  for (const std::string& name : op_.in(slot)) out.emplace_back(&b_, name);
  return out;
}

Var Grad::out(std::string_view slot, size_t i) const {
  const Names& names = op_.out(slot);
  return i < names.size() ? Var(&b_, names[i]) : Var();
}

bool Grad::needs(std::string_view slot, size_t i) const {
  const Names& names = op_.in(slot);
  return i < names.size() && needs_(names[i]);
}

bool Grad::has_dout(std::string_view slot, size_t i) const {
  const Names& names = op_.out(slot);
  return i < names.size() && grad_of_(names[i]).defined();
}

Var Grad::dout(std::string_view slot, size_t i) {
  const Var forward = out(slot, i);
  FLEETX_CHECK(forward.defined(), describe(op_), "has no output '", slot, "' number ", i);
  const Var gradient = grad_of_(forward.name());
  if (gradient.defined()) return gradient;
  return b_.op("fill_like", {{"x", forward}}, {{"value", 0.0}},
               {{"out", b_.unique_name(grad_name(forward.name()))}});
}

std::string Grad::dx(std::string_view slot, size_t i) {
  const std::string name = grad_name(op_.in(slot).at(i));
  return b_.main().find(name) == nullptr ? name : b_.unique_name(name);
}

void Grad::set(std::string_view slot, size_t i, Var gradient) {
  FLEETX_CHECK(i < op_.in(slot).size(), describe(op_), "grad sets '", slot, "' number ", i);
  results_.insert_or_assign({std::string(slot), i}, std::move(gradient));
}

}  // namespace fleetx::ir
