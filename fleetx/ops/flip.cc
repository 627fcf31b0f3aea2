// flip: x with the order of entries reversed on the given axes. Any dtype. dx = flip(dout).
#include "fleetx/ops/lib/copy_kernel.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const int rank = c.in("x").shape.rank();
  for (const int64_t axis : c.attr<ir::Ints>("axes")) checked_axis(c, "x", axis, rank);
  c.out("out") = c.in("x");
}

void grad(ir::Grad& g) {
  g.set("x", g.op("flip", {{"x", g.dout("out")}}, {{"axes", g.attr<ir::Ints>("axes")}},
                  {{"out", g.dx("x")}}));
}

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  const Shape& x = p.in("x").shape;
  const auto strides = strides_of(x);
  std::vector<StridedCopy::Dim> dims;
  for (int d = 0; d < x.rank(); ++d)
    dims.push_back({x[d], strides[static_cast<size_t>(d)], strides[static_cast<size_t>(d)]});
  int64_t start = 0;
  for (const int64_t axis : p.attr<ir::Ints>("axes")) {
    StridedCopy::Dim& dim = dims[static_cast<size_t>(normalize_axis(axis, x.rank()))];
    start += (dim.size - 1) * dim.in;  // naming an axis twice turns it back: dim.in < 0 then
    dim.in = -dim.in;
  }
  return std::make_unique<CopyKernel>(p, dims, start);
}

FLEETX_OP(flip)
    .input("x")
    .output("out")
    .required_attr("axes", ir::AttrType::kInts)
    .infer(infer)
    .grad(grad)
    .kernel(make);

}  // namespace
}  // namespace fleetx::ops
