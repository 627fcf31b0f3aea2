// scale: out = scale * x + bias, or scale * (x + bias) with bias_after_scale=false. Any shape;
// float or integer. dx = scale * dout.
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/element_loop.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) { c.out("out") = c.in("x"); }

void grad(ir::Grad& g) {
  g.set("x", g.op("scale", {{"x", g.dout("out")}}, {{"scale", g.attr<double>("scale")}},
                  {{"out", g.dx("x")}}));
}

ir::Cost cost(const ir::Infer& c) {
  return {.flops = 2.0 * static_cast<double>(c.in("x").shape.numel())};
}

struct Scale {
  explicit Scale(const ir::Attrs& attrs) : scale(attrs.at("scale").as<double>()) {
    const bool after = attrs.at("bias_after_scale").as<bool>();
    offset = attrs.at("bias").as<double>() * (after ? 1.0 : scale);
  }
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(scale) * x + static_cast<T>(offset);
  }
  double scale, offset;
};
const RegisterLoop loop("scale", make_loop<Scale, 1>);

FLEETX_OP(scale)
    .input("x")
    .output("out")
    .attr("scale", 1.0)
    .attr("bias", 0.0)
    .attr("bias_after_scale", true)
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel(make_element_kernel)
    .in_place("out", "x")
    .element_wise();

}  // namespace
}  // namespace fleetx::ops
