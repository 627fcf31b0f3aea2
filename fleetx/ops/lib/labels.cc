#include "fleetx/ops/lib/labels.h"

namespace fleetx::ops {
namespace {

int axis_of(const ir::Op& op, int rank) {
  const auto attr = op.attrs.find("axis");
  return normalize_axis(attr == op.attrs.end() ? -1 : attr->second.as<int64_t>(), rank);
}

bool soft_labels(const ir::Op& op) {
  const auto attr = op.attrs.find("soft_label");
  return attr != op.attrs.end() && attr->second.as<bool>();
}

}  // namespace

Shape one_per_position(const ir::Infer& c, std::string_view x) {
  Shape out = c.in(x).shape;
  out[axis_of(c.op(), out.rank())] = 1;
  return out;
}

void check_labels(const ir::Infer& c, std::string_view x) {
  const Shape& shape = c.in(x).shape;
  const ir::TensorType& label = c.in("label");
  c.check(c.in(x).dtype == DType::kF32, x, " must be f32, but ", c.show(x));
  const int axis = axis_of(c.op(), shape.rank());
  c.check(0 <= axis && axis < shape.rank(), "there is no axis ", axis, ": ", c.show(x));
  if (soft_labels(c.op())) {
    c.check(label.dtype == DType::kF32 && label.shape == shape,
            "soft labels must be f32 in the shape of ", x, ", but ", c.show(x), " and ",
            c.show("label"));
    return;
  }
  c.check(label.dtype == DType::kI64 || label.dtype == DType::kI32,
          "hard labels must be i64 or i32, but ", c.show("label"));
  Shape without;
  for (int d = 0; d < shape.rank(); ++d)
    if (d != axis) without.push_back(shape[d]);
  c.check(label.shape == one_per_position(c, x) || label.shape == without,
          "labels must have the shape of ", x, " with axis ", axis, " of size 1 or left out, but ",
          c.show(x), " and ", c.show("label"));
}

void infer_loss_grad(ir::Infer& c, std::string_view x) {
  check_labels(c, x);
  c.check(c.in("dout").shape == one_per_position(c, x), "dout must have the shape ",
          one_per_position(c, x), ", but ", c.show("dout"));
  c.out("dx") = c.in(x);
}

ir::OpRegistrar class_loss(std::string type) {
  ir::OpRegistrar op(std::move(type));
  op.attr("soft_label", false).attr("ignore_index", -100).attr("axis", -1);
  return op;
}

ClassAxis class_axis(const kernel::Prepare& p, std::string_view x) {
  const Shape& shape = p.in(x).shape;
  const int axis = axis_of(p.op(), shape.rank());
  return {shape.numel(0, axis), shape[axis], shape.numel(axis + 1, shape.rank())};
}

void refuse_label_gradient(const ir::Grad& g) {
  check_arg(!g.needs("label"), ir::describe(g.op()), "there is no gradient for the label '",
            g.in("label").name(), "'; call stop_gradient() on it");
}

Labels::Labels(kernel::Prepare& p, std::string_view x)
    : slot_(p.input("label")),
      soft_(soft_labels(p.op())),
      wide_(p.in("label").dtype == DType::kI64),
      classes_(class_axis(p, x).classes),
      positions_(class_axis(p, x).positions()),
      ignored_(p.attr<int64_t>("ignore_index")),
      where_(ir::describe(p.op())) {}

Labels::View Labels::checked(const kernel::Run& r) const {
  const View labels(r.raw(slot_), wide_);
  for (int64_t i = 0; !soft_ && i < positions_; ++i) {
    const int64_t label = labels[i];
    check_arg((0 <= label && label < classes_) || label == ignored_, where_, "label ", label,
              " at position ", i, " is not one of the ", classes_, " classes");
  }
  return labels;
}

}  // namespace fleetx::ops
