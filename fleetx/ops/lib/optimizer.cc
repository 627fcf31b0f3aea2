#include "fleetx/ops/lib/optimizer.h"

#include <cmath>

namespace fleetx::ops {
namespace {

void check_scalar(const ir::Infer& c, std::string_view slot) {
  c.check(c.in(slot).dtype == DType::kF32 && c.in(slot).shape.numel() == 1, slot,
          " must be f32[1], but ", c.show(slot));
}

bool is_stored(const ir::TensorType& type) {
  return (type.dtype == f32 || type.dtype == bf16 || type.dtype == f16) &&
         type.kind == ir::VarKind::kDense;
}

// Rows lie anywhere: each is whole cache lines, read and written, and its id is sorted.
double bytes_of_rows(const ir::TensorType& grad, double width, double written) {
  constexpr double kLine = 64, kSorted = 2 * 32;
  const double row = std::ceil(4 * width / kLine) * kLine;
  return static_cast<double>(grad.rows) * (2 * written * row + 4 * width + kSorted);
}

// Each state, the gradient and the parameter are read; states and the parameter are written.
ir::Cost cost(const ir::Infer& c) {
  ir::Cost cost;
  const auto written = static_cast<double>(c.op().def->outputs.size());
  for (size_t i = 0; i < c.count("param"); ++i) {
    const ir::TensorType& grad = c.in("grad", i);
    const Shape& shape = grad.shape;
    const bool dense = grad.kind == ir::VarKind::kDense;
    const auto width = static_cast<double>(dense ? 1 : shape.numel(1, shape.rank()));
    const double elements =
        dense ? static_cast<double>(shape.numel()) : static_cast<double>(grad.rows) * width;
    cost.flops += elements * 4 * written;
    cost.bytes += dense ? elements * 4 * (2 * written + 1) : bytes_of_rows(grad, width, written);
  }
  return cost;
}

// The option's range, and whether the op can do with the rows of a sparse gradient.
void check_declared(const ir::Infer& c, const optim::OptimizerDef& def) {
  for (const optim::OptionDef& option : def.options)
    if (option.in_op() && option.fallback.type() == ir::AttrType::kFloat)
      c.check(option.range.contains(c.attr<double>(option.attr)), option.attr, " must be ",
              option.range.text(), ", got ", c.attr<double>(option.attr));
  for (size_t i = 0; def.dense_only && i < c.count("grad"); ++i)
    c.check(c.in("grad", i).kind == ir::VarKind::kDense, c.op().type(),
            " needs the norm of a whole gradient, so it takes no sparse one, but ",
            c.show("grad", i));
}

void infer(ir::Infer& c) {
  const size_t n = c.count("param");
  c.check(c.count("grad") == n, "got ", n, " parameters and ", c.count("grad"), " gradients");
  for (size_t i = 0; i < n; ++i) {
    c.check(is_stored(c.in("param", i)), "parameters must be f32, bf16 or f16 and dense, but ",
            c.show("param", i));
    const ir::TensorType& grad = c.in("grad", i);
    c.check((grad.dtype == f32 || is_stored(grad)) && grad.shape == c.in("param", i).shape,
            "a gradient must be like its parameter, but ", c.show("param", i), " and ",
            c.show("grad", i));
  }
  check_scalar(c, "lr");
  if (c.has("scale")) check_scalar(c, "scale");

  for (const ir::SlotDef& slot : c.op().def->outputs) {
    const std::string input = slot.name.substr(0, slot.name.rfind("_out"));
    c.check(c.op().out(slot.name) == c.op().in(input), "output '", slot.name,
            "' must be the same variables as input '", input, "': they are updated in place");
    c.check(c.count(input) == n, "got ", n, " parameters and ", c.count(input), " of '", input,
            "'");
    for (size_t i = 0; i < n; ++i) {
      const ir::TensorType& state = c.in(input, i);
      const bool power = input.ends_with("_pow");
      const Shape wanted = power ? Shape{1} : c.in("param", i).shape;
      // The squares of gradients are too small for f16: what divides by them would explode.
      const bool fits = is_stored(state) && (state.dtype != f16 || input == "param") &&
                        (!power || state.dtype == f32);
      c.check(fits && state.shape == wanted, "'", input, "' of '", c.op().in("param")[i],
              "' must be f32", wanted, power ? "" : " or bf16", ", but ", c.show(input, i));
      c.out(slot.name, i) = state;
    }
  }
  for (const ir::AttrDef& attr : c.op().def->attrs) {
    if (attr.type != ir::AttrType::kFloats) continue;
    const size_t given = c.attr<ir::Floats>(attr.name).size();
    c.check(given == 0 || given == n, "attribute '", attr.name, "' has ", given, " values for ", n,
            " parameters");
  }
  check_declared(c, optim::optimizer_def(c.op().type()));
}

}  // namespace

ir::OpRegistrar optimizer_op(const optim::OptimizerDef& def) {
  ir::OpRegistrar r(def.op);
  r.input("param", ir::Arity::kMany).input("grad", ir::Arity::kMany);
  r.output("param_out", ir::Arity::kMany);
  for (const optim::StateDef& state : def.states)
    r.input(state.slot, ir::Arity::kMany).output(state.slot + "_out", ir::Arity::kMany);
  r.input("lr").input("scale", ir::Arity::kOptional);
  r.attr("lr_factors", ir::Floats{}).attr("l1", ir::Floats{}).attr("l2", ir::Floats{});
  for (const optim::OptionDef& option : def.options)
    if (option.in_op()) r.attr(option.attr, option.fallback);
  if (def.with_decay) r.attr("with_decay", ir::Floats{});
  r.infer(infer).cost(cost).updates_parameters();
  return r;
}

double per_parameter(const kernel::Prepare& p, std::string_view attr, size_t i, double fallback) {
  const auto values = p.attr<ir::Floats>(attr);
  return values.empty() ? fallback : values[i];
}

}  // namespace fleetx::ops
