// softmax:     out = exp(x - m) / sum exp(x - m), m the largest x, along `axis`.
//   dx = out * (dout - sum(out * dout))
// log_softmax: out = x - m - log(sum exp(x - m)).   dx = dout - exp(out) * sum(dout)
// Both are row-major and keep only out for the gradient.
#include "fleetx/kernel/op.h"
#include "fleetx/ops/onednn.h"

namespace fleetx {
namespace {

using onednn::memory;

int axis_of(const ir::Infer& c, std::string_view slot) {
  const int rank = c.in(slot).shape.rank();
  const int axis = normalize_axis(c.attr<int64_t>("axis"), rank);
  c.check(c.in(slot).dtype == DType::kF32, c.show(slot), "; expected f32");
  c.check(axis >= 0 && axis < rank, c.show(slot), "; axis is ", c.attr<int64_t>("axis"));
  return axis;
}

void infer(ir::Infer& c) {
  axis_of(c, "x");
  c.out("out") = c.in("x");
}

void infer_grad(ir::Infer& c) {
  axis_of(c, "out");
  c.check(c.in("dout") == c.in("out"), c.show("dout"), "; must be like ", c.show("out"));
  c.out("dx") = c.in("out");
}

ir::Cost cost(const ir::Infer& c) {
  return {.flops = 5.0 * static_cast<double>(c.in("x").shape.numel())};
}

ir::Cost cost_grad(const ir::Infer& c) {
  return {.flops = 4.0 * static_cast<double>(c.in("dout").shape.numel())};
}

void grad(ir::Grad& g) {
  g.set("x", g.op(g.op().type() + "_grad", {{"out", g.out("out")}, {"dout", g.dout("out")}},
                  {{"axis", g.attr<int64_t>("axis")}}, {{"dx", g.dx("x")}}));
}

// [outer, axis] or [outer, axis, inner]; the axis is dimension 1.
memory::desc view(const kernel::Prepare& p, const Shape& shape) {
  const int axis = normalize_axis(p.attr<int64_t>("axis"), shape.rank());
  Shape seen{shape.numel(0, axis), shape[axis]};
  if (axis + 1 < shape.rank()) seen.push_back(shape.numel(axis + 1, shape.rank()));
  return onednn::desc(DType::kF32, seen);
}

template <class Forward>
typename Forward::primitive_desc forward(const memory::desc& md) {
  return {{dnnl::prop_kind::forward_training, md, 1}, onednn::attributes(), onednn::engine()};
}

template <class Forward>
class Softmax final : public kernel::Kernel {
 public:
  explicit Softmax(kernel::Prepare& p) {
    const memory::desc md = view(p, p.in("x").shape);
    softmax_ = onednn::Primitive(p, forward<Forward>(md));
    softmax_.arg(DNNL_ARG_SRC, p.input("x"), md).arg(DNNL_ARG_DST, p.output("out"), md);
  }
  void run(const kernel::Run& r) override { softmax_.run(r); }
  std::string_view implementation() const override { return softmax_.implementation(); }

 private:
  onednn::Primitive softmax_;
};

template <class Forward, class Backward>
class SoftmaxGrad final : public kernel::Kernel {
 public:
  explicit SoftmaxGrad(kernel::Prepare& p) {
    const memory::desc md = view(p, p.in("dout").shape);
    softmax_ = onednn::Primitive(
        p, typename Backward::primitive_desc({md, md, 1}, onednn::attributes(), onednn::engine(),
                                             forward<Forward>(md)));
    softmax_.arg(DNNL_ARG_DST, p.input("out"), md)
        .arg(DNNL_ARG_DIFF_DST, p.input("dout"), md)
        .arg(DNNL_ARG_DIFF_SRC, p.output("dx"), md);
  }
  void run(const kernel::Run& r) override { softmax_.run(r); }
  std::string_view implementation() const override { return softmax_.implementation(); }

 private:
  onednn::Primitive softmax_;
};

FLEETX_OP(softmax)
    .input("x")
    .output("out")
    .attr("axis", -1)
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel<Softmax<dnnl::softmax_forward>>()
    .in_place("out", "x");

FLEETX_OP(softmax_grad)
    .input("out")
    .input("dout")
    .output("dx")
    .attr("axis", -1)
    .infer(infer_grad)
    .cost(cost_grad)
    .kernel<SoftmaxGrad<dnnl::softmax_forward, dnnl::softmax_backward>>()
    .in_place("dx", "dout");

FLEETX_OP(log_softmax)
    .input("x")
    .output("out")
    .attr("axis", -1)
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel<Softmax<dnnl::logsoftmax_forward>>()
    .in_place("out", "x");

FLEETX_OP(log_softmax_grad)
    .input("out")
    .input("dout")
    .output("dx")
    .attr("axis", -1)
    .infer(infer_grad)
    .cost(cost_grad)
    .kernel<SoftmaxGrad<dnnl::logsoftmax_forward, dnnl::logsoftmax_backward>>()
    .in_place("dx", "dout");

}  // namespace
}  // namespace fleetx
