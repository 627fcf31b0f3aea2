// concat: xs one after the other along an axis; all other dimensions are equal. Any dtype.
// dxs = split(dout); concat_grad stands in where the lengths are not known before the plan.
#include "fleetx/ops/lib/copy_kernel.h"
#include "fleetx/ops/lib/pieces.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const ir::TensorType& first = c.in("xs");
  const int axis = checked_axis(c, "xs");
  ir::TensorType out = first;
  for (size_t i = 1; i < c.count("xs"); ++i) {
    const ir::TensorType& x = c.in("xs", i);
    bool fits = x.dtype == first.dtype && x.shape.rank() == first.shape.rank();
    for (int d = 0; fits && d < x.shape.rank(); ++d)
      fits = d == axis || x.shape[d] == first.shape[d];
    c.check(fits, c.show("xs"), ", ", c.show("xs", i), "; they may differ on axis ", axis, " only");
    out.shape[axis] += x.shape[axis];
  }
  c.out("out") = out;
}

void grad(ir::Grad& g) {
  const auto axis = g.attr<int64_t>("axis");
  ir::Ints sections;
  int unknown = 0;
  for (const ir::Var& x : g.ins("xs")) {
    sections.push_back(x.shape()[normalize_axis(axis, x.shape().rank())]);
    if (sections.back() < 0) ++unknown;
  }
  const auto set_all = [&](const std::vector<ir::Var>& gradients) {
    for (size_t i = 0; i < gradients.size(); ++i)
      if (g.needs("xs", i)) g.set("xs", i, gradients[i]);
  };
  if (unknown <= 1)
    set_all(g.op("split", {{"x", g.dout("out")}}, {{"axis", axis}, {"sections", sections}},
                 {{"outs", gradient_names(g, "xs")}})
                .all("outs"));
  else
    set_all(g.op("concat_grad", {{"xs", g.ins("xs")}, {"dout", g.dout("out")}}, {{"axis", axis}},
                 {{"dxs", gradient_names(g, "xs")}})
                .all("dxs"));
}

void infer_grad(ir::Infer& c) {
  int64_t length = 0;
  const int axis = checked_axis(c, "xs");
  for (size_t i = 0; i < c.count("xs"); ++i)
    length += (c.out("dxs", i) = c.in("xs", i)).shape[axis];
  c.check(c.by_example() || length == c.in("dout").shape[axis], c.show("dout"), "; xs have ",
          length, " on axis ", axis);
}

FLEETX_OP(concat)
    .input("xs", ir::Arity::kMany)
    .output("out")
    .attr("axis", 0)
    .infer(infer)
    .grad(grad)
    .kernel(+[](kernel::Prepare& p) {
      return make_join(p, "xs", normalize_axis(p.attr<int64_t>("axis"), p.in("xs").shape.rank()),
                       "out");
    });

FLEETX_OP(concat_grad)
    .input("xs", ir::Arity::kMany)
    .input("dout")
    .output("dxs", ir::Arity::kMany)
    .attr("axis", 0)
    .infer(infer_grad)
    .shape_only("xs")
    .kernel(+[](kernel::Prepare& p) {
      return make_cut(p, "dout", normalize_axis(p.attr<int64_t>("axis"), p.in("dout").shape.rank()),
                      "dxs");
    });

}  // namespace
}  // namespace fleetx::ops
