// shape: the dimensions of x as a vector [rank] of i64 or i32. No gradient.
#include <algorithm>

#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const auto dtype = c.attr<DType>("dtype");
  c.check(dtype == i64 || dtype == i32, "dtype must be i64 or i32, got ", dtype);
  c.out("out") = {dtype, {c.in("x").shape.rank()}, ir::VarKind::kDense, -1};
}

class ShapeKernel final : public kernel::Kernel {
 public:
  explicit ShapeKernel(kernel::Prepare& p)
      : out_(p.output("out")), wide_(p.out("out").dtype == i64), shape_(p.in("x").shape) {}

  void run(const kernel::Run& r) override {
    if (wide_)
      std::copy(shape_.begin(), shape_.end(), r.out<int64_t>(out_));
    else
      std::copy(shape_.begin(), shape_.end(), r.out<int32_t>(out_));
  }

 private:
  kernel::Slot out_;
  bool wide_;
  Shape shape_;
};

FLEETX_OP(shape)
    .input("x")
    .output("out")
    .attr("dtype", "i64")
    .infer(infer)
    .kernel<ShapeKernel>()
    .shape_only("x");

}  // namespace
}  // namespace fleetx::ops
