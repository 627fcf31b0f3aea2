// empty: out of the given shape and dtype, with whatever its memory holds: a place for what another
// rank sends. Nobody may read it before that has come. No gradient.
#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const auto shape = c.attr<Shape>("shape");
  for (const int64_t d : shape)
    c.check(d >= 0, "attribute 'shape' is ", shape, "; every dimension must be known");
  c.out("out") = {c.attr<DType>("dtype"), shape};
}

class EmptyKernel final : public kernel::Kernel {
 public:
  explicit EmptyKernel(kernel::Prepare& p) { (void)p.output("out"); }
  void run(const kernel::Run&) override {}
};

FLEETX_OP(empty)
    .output("out")
    .required_attr("shape", ir::AttrType::kInts)
    .attr("dtype", "f32")
    .infer(infer)
    .kernel<EmptyKernel>();

}  // namespace
}  // namespace fleetx::ops
