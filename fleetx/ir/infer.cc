#include "fleetx/ir/infer.h"

#include "fleetx/ir/example.h"

namespace fleetx::ir {
namespace {

TensorType substitute(TensorType type, int64_t example) {
  for (int d = 0; d < type.shape.rank(); ++d)
    if (type.shape[d] < 0) type.shape[d] = example;
  if (type.kind == VarKind::kSparseRows && type.rows < 0) type.rows = example;
  return type;
}

bool is_known(const TensorType& type) {
  return type.shape.known() && (type.kind == VarKind::kDense || type.rows >= 0);
}

TensorType merge(const Op& op, const TensorType& a, const TensorType& b) {
  FLEETX_CHECK(a.dtype == b.dtype && a.kind == b.kind && a.shape.rank() == b.shape.rank(),
               describe(op), "infer gives different ranks or dtypes for different batch sizes");
  TensorType out = a;
  for (int d = 0; d < a.shape.rank(); ++d)
    if (a.shape[d] != b.shape[d]) out.shape[d] = -1;
  if (a.rows != b.rows) out.rows = -1;
  return out;
}

}  // namespace

Infer::Infer(const Op& op, const TypeOf& type_of) : Infer(op, type_of, 0) {}

Infer::Infer(const Op& op, const TypeOf& type_of, int64_t unknown_dim)
    : op_(op), example_(unknown_dim) {
  for (const Names& slot : op.inputs) {
    shown_.emplace_back();
    ins_.emplace_back();
    for (const std::string& name : slot) {
      shown_.back().push_back(type_of(name));
      ins_.back().push_back(unknown_dim ? substitute(shown_.back().back(), unknown_dim)
                                        : shown_.back().back());
    }
  }
  for (const Names& slot : op.outputs) outs_.emplace_back(slot.size());
}

const TensorType& Infer::in(std::string_view slot, size_t i) const {
  const auto& types = ins_[static_cast<size_t>(op_.def->input_index(slot))];
  FLEETX_CHECK(i < types.size(), describe(op_), "input '", slot, "' number ", i, " is not given");
  return types[i];
}

TensorType& Infer::out(std::string_view slot, size_t i) {
  auto& types = outs_[static_cast<size_t>(op_.def->output_index(slot))];
  FLEETX_CHECK(i < types.size(), describe(op_), "output '", slot, "' number ", i,
               " is not asked for");
  return types[i];
}

const TensorType& Infer::out(std::string_view slot, size_t i) const {
  return const_cast<Infer*>(this)->out(slot, i);
}

std::string Infer::show(std::string_view slot, size_t i) const {
  const auto s = static_cast<size_t>(op_.def->input_index(slot));
  if (i >= shown_[s].size()) return str(slot, " is not given");
  return str(slot, " '", op_.inputs[s][i], "' is ", shown_[s][i]);
}

void Infer::fail_check(const std::string& message) const {
  fail(Error::Kind::kInvalidArgument, describe(op_) + message);
}

std::vector<std::vector<TensorType>> infer_types(const Op& op, const Infer::TypeOf& type_of) {
  bool known = true;
  for (const Names& slot : op.inputs)
    for (const std::string& name : slot) known = known && is_known(type_of(name));
  if (known) {
    Infer infer(op, type_of);
    op.def->infer(infer);
    return infer.outputs();
  }
  Infer a(op, type_of, kExampleA), b(op, type_of, kExampleB);
  op.def->infer(a);
  op.def->infer(b);
  std::vector<std::vector<TensorType>> out = a.outputs();
  for (size_t s = 0; s < out.size(); ++s)
    for (size_t i = 0; i < out[s].size(); ++i) out[s][i] = merge(op, out[s][i], b.outputs()[s][i]);
  return out;
}

double bytes_of(const TensorType& type) {
  const auto unit = static_cast<double>(size_of(type.dtype));
  if (type.kind == VarKind::kDense) return static_cast<double>(type.shape.numel()) * unit;
  const auto width = static_cast<double>(type.shape.numel(1, type.shape.rank()));
  return static_cast<double>(type.rows) * (width * unit + 8);
}

Communication communication_of(const Infer& c, CommKind kind, std::string_view slot) {
  Communication out{kind, c.attr<std::string>("group"), 0};
  for (size_t i = 0; i < c.count(slot); ++i) out.bytes += bytes_of(c.in(slot, i));
  return out;
}

Cost cost_of(const Op& op, const Infer::TypeOf& type_of) {
  Infer infer(op, type_of);
  op.def->infer(infer);
  Cost cost;
  if (op.def->cost) cost = op.def->cost(infer);
  if (cost.bytes == 0) {
    for (size_t s = 0; s < op.inputs.size(); ++s)
      for (const std::string& name : op.inputs[s]) cost.bytes += bytes_of(type_of(name));
    for (const auto& slot : infer.outputs())
      for (const TensorType& type : slot) cost.bytes += bytes_of(type);
  }
  return cost;
}

}  // namespace fleetx::ir
