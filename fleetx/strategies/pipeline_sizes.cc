#include "fleetx/strategies/pipeline_sizes.h"

#include "fleetx/ir/example.h"
#include "fleetx/ir/infer.h"

namespace fleetx::strategies {

using ir::kExampleA;

namespace {

constexpr const char* kAnyBatch =
    "; declare the data with a first size of -1, and give layers that take sizes (reshape, expand) "
    "-1 in its place";

}  // namespace

int64_t rows_of_a_sample(const ir::VarInfo& data) {
  const auto rows = data.attrs.find("rows");
  return rows == data.attrs.end() ? 1 : rows->second.as<int64_t>();
}

void check_parts(int64_t batch, int micro_batches, int64_t size) {
  check_arg(size > 0 ? batch == size * micro_batches : batch % micro_batches == 0,
            "pipeline: the data are declared with a batch of ", batch, ", which is not ",
            micro_batches, " micro-batches", size > 0 ? str(" of ", size) : "", kAnyBatch);
}

BatchSizes::BatchSizes(const ir::Program& main, const IsCut& is_cut, int micro_batches)
    : p_(main), is_cut_(is_cut), parts_(micro_batches) {
  for (const ir::VarInfo* v : main.vars())
    if (is_cut(*v)) {
      data_.emplace(v->name, v->name);
      known_ = known_ || v->type.shape[0] > 0;
    }
  for (const ir::Op& op : main.ops()) {
    if (op.role != ir::Role::kForward) continue;
    const std::string* from = nullptr;
    for (const ir::Names& names : op.inputs)
      for (const std::string& name : names)
        if (const auto it = data_.find(name); it != data_.end() && from == nullptr)
          from = &it->second;
    if (from == nullptr) continue;
    const std::string data = *from;
    for (const ir::Names& names : op.outputs)
      for (const std::string& name : names) data_.emplace(name, data);
  }
  try {
    small_ = infer(kExampleA, kExampleA);
  } catch (const Error& e) {
    if (!known_) throw;
    fail(Error::Kind::kInvalidArgument,
         str("pipeline: the data are declared with the size of the batch, and the program does not "
             "work with one of ",
             micro_batches, " micro-batches of it: ", e.what(), kAnyBatch));
  }
  if (known_) return;
  large_ = infer(2 * kExampleA, kExampleA);
  larger_ = infer(3 * kExampleA, kExampleA);
  other_ = infer(kExampleA, 2 * kExampleA);
}

// With this many rows in a micro-batch, and this in the place of other unknown sizes.
BatchSizes::Types BatchSizes::infer(int64_t rows, int64_t other) const {
  Types types;
  for (const ir::VarInfo* v : p_.vars()) {
    if (!v->is_data && !v->persistable) continue;
    ir::TensorType type = v->type;
    if (is_cut_(*v)) type.shape[0] = known_ ? type.shape[0] / parts_ : rows;
    for (int d = 0; d < type.shape.rank(); ++d)
      if (type.shape[d] < 0) type.shape[d] = other;
    types.emplace(v->name, type);
  }
  for (const ir::Op& op : p_.ops()) {
    // Of a known batch gradients may have the size in them, too.
    if (op.role != ir::Role::kForward && !(known_ && op.role == ir::Role::kBackward)) continue;
    const auto made = ir::infer_types(
        op, [&](const std::string& name) -> const ir::TensorType& { return types.at(name); });
    for (size_t s = 0; s < made.size(); ++s)
      for (size_t i = 0; i < made[s].size(); ++i) types.emplace(op.outputs[s][i], made[s][i]);
  }
  return types;
}

RowSizes BatchSizes::of(const std::string& var) const {
  RowSizes sizes;
  const ir::TensorType& a = small_.at(var);
  sizes.dtype = a.dtype;
  sizes.fixed = a.shape;
  sizes.per_row.assign(static_cast<size_t>(a.shape.rank()), 0);
  if (const auto it = data_.find(var); it != data_.end()) sizes.like = it->second;
  if (known_) return sizes;
  const Shape &b = large_.at(var).shape, &c = larger_.at(var).shape, &d = other_.at(var).shape;
  for (int i = 0; i < a.shape.rank(); ++i) {
    const int64_t step = b[i] - a.shape[i];
    check_arg(d[i] == a.shape[i] && c[i] - b[i] == step && step % kExampleA == 0, "pipeline: '",
              var, "' goes to another stage, but its dimension ", i,
              " follows from sizes of the data other than the batch, which are not known before "
              "they are fed; declare the data with all sizes but the first, or put the layers "
              "that use it on one stage");
    sizes.per_row[static_cast<size_t>(i)] = step / kExampleA;
    sizes.fixed[i] -= sizes.per_row[static_cast<size_t>(i)] * kExampleA;
  }
  return sizes;
}

}  // namespace fleetx::strategies
