// transpose: dimension d of out is dimension perm[d] of x. dx = transpose(dout) with the inverse
// permutation. Any dtype. A permutation that leaves the last dimensions alone moves whole rows; one
// that moves the last goes block by block.
#include "fleetx/ops/lib/copy_kernel.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const Shape& x = c.in("x").shape;
  const auto perm = c.attr<ir::Ints>("perm");
  c.check(static_cast<int>(perm.size()) == x.rank(), c.show("x"), "; perm must have ", x.rank(),
          " entries, got ", Shape(perm));
  std::vector<bool> seen(perm.size());
  Shape shape;
  for (const int64_t axis : perm) {
    const int d = checked_axis(c, "x", axis, x.rank());
    c.check(!seen[static_cast<size_t>(d)], "perm ", Shape(perm), " names axis ", d, " twice");
    seen[static_cast<size_t>(d)] = true;
    shape.push_back(x[d]);
  }
  c.out("out") = {c.in("x").dtype, shape, ir::VarKind::kDense, -1};
}

void grad(ir::Grad& g) {
  const auto perm = g.attr<ir::Ints>("perm");
  const int rank = static_cast<int>(perm.size());
  ir::Ints inverse(perm.size());
  for (int d = 0; d < rank; ++d)
    inverse[static_cast<size_t>(normalize_axis(perm[static_cast<size_t>(d)], rank))] = d;
  g.set("x", g.op("transpose", {{"x", g.dout("out")}}, {{"perm", inverse}}, {{"out", g.dx("x")}}));
}

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  const Shape& out = p.out("out").shape;
  const auto perm = p.attr<ir::Ints>("perm");
  const auto from = strides_of(p.in("x").shape), to = strides_of(out);
  std::vector<StridedCopy::Dim> dims;
  for (int d = 0; d < out.rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    dims.push_back({out[d], from[static_cast<size_t>(normalize_axis(perm[i], out.rank()))], to[i]});
  }
  return std::make_unique<CopyKernel>(p, dims);
}

FLEETX_OP(transpose)
    .input("x")
    .output("out")
    .required_attr("perm", ir::AttrType::kInts)
    .infer(infer)
    .grad(grad)
    .kernel(make);

}  // namespace
}  // namespace fleetx::ops
