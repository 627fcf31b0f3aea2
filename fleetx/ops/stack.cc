// stack: equal xs put side by side along a new axis. unstack: the reverse; x has as many entries
// on the axis as there are outs. Any dtype. Each is the gradient of the other.
#include "fleetx/ops/lib/copy_kernel.h"
#include "fleetx/ops/lib/pieces.h"

namespace fleetx::ops {
namespace {

void infer_stack(ir::Infer& c) {
  const ir::TensorType& first = c.in("xs");
  const int axis = checked_axis(c, "xs", c.attr<int64_t>("axis"), first.shape.rank() + 1);
  for (size_t i = 1; i < c.count("xs"); ++i) {
    const ir::TensorType& x = c.in("xs", i);
    c.check(x.dtype == first.dtype && x.shape == first.shape, c.show("xs"), ", ", c.show("xs", i),
            "; they must be alike");
  }
  std::vector<int64_t> dims = first.shape.dims();
  dims.insert(dims.begin() + axis, static_cast<int64_t>(c.count("xs")));
  c.out("out") = {first.dtype, Shape(dims), ir::VarKind::kDense, -1};
}

void infer_unstack(ir::Infer& c) {
  const ir::TensorType& x = c.in("x");
  const int axis = checked_axis(c, "x");
  const auto count = static_cast<int64_t>(c.out_count("outs"));
  c.check(count > 0 && x.shape[axis] == count, c.show("x"), "; axis ", axis, " has ", x.shape[axis],
          " entries, but there are ", count, " outs");
  std::vector<int64_t> dims = x.shape.dims();
  dims.erase(dims.begin() + axis);
  for (size_t i = 0; i < c.out_count("outs"); ++i)
    c.out("outs", i) = {x.dtype, Shape(dims), ir::VarKind::kDense, -1};
}

void grad_stack(ir::Grad& g) {
  const auto gradients =
      g.op("unstack", {{"x", g.dout("out")}}, {{"axis", g.attr<int64_t>("axis")}},
           {{"outs", gradient_names(g, "xs")}})
          .all("outs");
  for (size_t i = 0; i < gradients.size(); ++i)
    if (g.needs("xs", i)) g.set("xs", i, gradients[i]);
}

void grad_unstack(ir::Grad& g) {
  std::vector<ir::Var> douts;
  for (size_t i = 0; i < g.op().out("outs").size(); ++i) douts.push_back(g.dout("outs", i));
  g.set("x",
        g.op("stack", {{"xs", douts}}, {{"axis", g.attr<int64_t>("axis")}}, {{"out", g.dx("x")}}));
}

FLEETX_OP(stack)
    .input("xs", ir::Arity::kMany)
    .output("out")
    .attr("axis", 0)
    .infer(infer_stack)
    .grad(grad_stack)
    .kernel(+[](kernel::Prepare& p) {
      return make_join(p, "xs", normalize_axis(p.attr<int64_t>("axis"), p.out("out").shape.rank()),
                       "out");
    });

FLEETX_OP(unstack)
    .input("x")
    .output("outs", ir::Arity::kMany)
    .attr("axis", 0)
    .infer(infer_unstack)
    .grad(grad_unstack)
    .kernel(+[](kernel::Prepare& p) {
      return make_cut(p, "x", normalize_axis(p.attr<int64_t>("axis"), p.in("x").shape.rank()),
                      "outs");
    });

}  // namespace
}  // namespace fleetx::ops
