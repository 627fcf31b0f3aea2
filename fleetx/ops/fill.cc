// Ops that make constants:
//   fill             out = value                 of the given shape and dtype
//   fill_like        out = value                 shaped like x; dtype "" means as x
//   fill_batch_like  out = value                 of the given shape, but dim output_dim as x's
//                                                input_dim (the batch)
//   assign_value     out = values                row-major
//   arange           out = start + i * step      for all i with a value before `end`
// None has a gradient.
#include <cmath>

#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/strided_copy.h"

namespace fleetx::ops {
namespace {

Shape given_shape(const ir::Infer& c) {
  const auto shape = c.attr<Shape>("shape");
  for (const int64_t d : shape)
    c.check(d >= 0, "attribute 'shape' is ", shape, "; every dimension must be known");
  return shape;
}

void infer_fill(ir::Infer& c) { c.out("out") = {c.attr<DType>("dtype"), given_shape(c)}; }

void infer_fill_like(ir::Infer& c) {
  const auto dtype = c.attr<std::string>("dtype");
  c.out("out") = {dtype.empty() ? c.in("x").dtype : c.attr<DType>("dtype"), c.in("x").shape};
}

void infer_fill_batch_like(ir::Infer& c) {
  auto shape = c.attr<Shape>("shape");
  const Shape& x = c.in("x").shape;
  const auto from = c.attr<int64_t>("input_dim"), to = c.attr<int64_t>("output_dim");
  c.check(from >= 0 && from < x.rank(), "input_dim is ", from, ", but ", c.show("x"));
  c.check(to >= 0 && to < shape.rank(), "output_dim is ", to, ", but shape is ", shape);
  shape[static_cast<int>(to)] = x[static_cast<int>(from)];
  for (const int64_t d : shape)
    c.check(d >= 0, "attribute 'shape' is ", c.attr<Shape>("shape"),
            "; every dimension but output_dim must be known");
  c.out("out") = {c.attr<DType>("dtype"), shape};
}

void infer_assign_value(ir::Infer& c) {
  infer_fill(c);
  const auto given = static_cast<int64_t>(c.attr<ir::Floats>("values").size());
  c.check(given == c.out("out").shape.numel(), "shape ", c.out("out").shape, " needs ",
          c.out("out").shape.numel(), " values, got ", given);
}

void infer_arange(ir::Infer& c) {
  const auto start = c.attr<double>("start"), end = c.attr<double>("end");
  const auto step = c.attr<double>("step");
  c.check(step != 0 && std::isfinite(step) && std::isfinite(end - start),
          "start, end and step must be finite and step not 0; got ", start, ", ", end, ", ", step);
  const double count = std::max(0.0, std::ceil((end - start) / step));
  c.check(count < 0x1p40, "would make ", count, " elements");
  c.out("out") = {c.attr<DType>("dtype"), {static_cast<int64_t>(count)}};
}

class FillKernel final : public kernel::Kernel {
 public:
  explicit FillKernel(kernel::Prepare& p)
      : value_(p.attr<double>("value")),
        out_(p.output("out")),
        dtype_(p.out("out").dtype),
        n_(p.out("out").numel()) {}

  void run(const kernel::Run& r) override { fill(r.raw(out_), dtype_, n_, value_); }

 private:
  double value_;
  kernel::Slot out_;
  DType dtype_;
  int64_t n_;
};

class AssignValueKernel final : public kernel::Kernel {
 public:
  explicit AssignValueKernel(kernel::Prepare& p)
      : values_(p.attr<ir::Floats>("values")), out_(p.output("out")), dtype_(p.out("out").dtype) {}

  void run(const kernel::Run& r) override {
    with_type(dtype_, [&](auto zero) {
      using T = decltype(zero);
      T* out = r.out<T>(out_);
      for (size_t i = 0; i < values_.size(); ++i) out[i] = static_cast<T>(values_[i]);
    });
  }

 private:
  ir::Floats values_;
  kernel::Slot out_;
  DType dtype_;
};

class ArangeKernel final : public kernel::Kernel {
 public:
  explicit ArangeKernel(kernel::Prepare& p)
      : start_(p.attr<double>("start")),
        step_(p.attr<double>("step")),
        out_(p.output("out")),
        dtype_(p.out("out").dtype),
        n_(p.out("out").numel()) {}

  void run(const kernel::Run& r) override {
    with_type(dtype_, [&](auto zero) {
      using T = decltype(zero);
      T* out = r.out<T>(out_);
      for (int64_t i = 0; i < n_; ++i)
        out[i] = static_cast<T>(start_ + static_cast<double>(i) * step_);
    });
  }

 private:
  double start_, step_;
  kernel::Slot out_;
  DType dtype_;
  int64_t n_;
};

FLEETX_OP(fill)
    .output("out")
    .required_attr("shape", ir::AttrType::kInts)
    .attr("dtype", "f32")
    .attr("value", 0.0)
    .infer(infer_fill)
    .kernel<FillKernel>();

FLEETX_OP(fill_like)
    .input("x")
    .output("out")
    .attr("value", 0.0)
    .attr("dtype", "")
    .infer(infer_fill_like)
    .kernel<FillKernel>()
    .shape_only("x");

FLEETX_OP(fill_batch_like)
    .input("x")
    .output("out")
    .required_attr("shape", ir::AttrType::kInts)
    .attr("value", 0.0)
    .attr("dtype", "f32")
    .attr("input_dim", 0)
    .attr("output_dim", 0)
    .infer(infer_fill_batch_like)
    .kernel<FillKernel>()
    .shape_only("x");

FLEETX_OP(assign_value)
    .output("out")
    .required_attr("shape", ir::AttrType::kInts)
    .attr("dtype", "f32")
    .required_attr("values", ir::AttrType::kFloats)
    .infer(infer_assign_value)
    .kernel<AssignValueKernel>();

FLEETX_OP(arange)
    .output("out")
    .attr("start", 0.0)
    .required_attr("end", ir::AttrType::kFloat)
    .attr("step", 1.0)
    .attr("dtype", "f32")
    .infer(infer_arange)
    .kernel<ArangeKernel>();

}  // namespace
}  // namespace fleetx::ops
