// increment: out = x + value. Used in place on counters (out is the variable x). No gradient.
#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const DType dtype = c.in("x").dtype;
  c.check(dtype == f32 || dtype == f64 || dtype == i32 || dtype == i64, c.show("x"),
          "; expected f32, f64, i32 or i64");
  c.out("out") = c.in("x");
}

class IncrementKernel final : public kernel::Kernel {
 public:
  explicit IncrementKernel(kernel::Prepare& p)
      : value_(p.attr<double>("value")),
        x_(p.input("x")),
        out_(p.output("out")),
        dtype_(p.in("x").dtype),
        n_(p.in("x").numel()) {}

  void run(const kernel::Run& r) override {
    with_type(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* x = r.in<T>(x_);
      T* out = r.out<T>(out_);
      for (int64_t i = 0; i < n_; ++i) out[i] = static_cast<T>(x[i] + static_cast<T>(value_));
    });
  }

 private:
  double value_;
  kernel::Slot x_, out_;
  DType dtype_;
  int64_t n_;
};

FLEETX_OP(increment)
    .input("x")
    .output("out")
    .attr("value", 1.0)
    .infer(infer)
    .kernel<IncrementKernel>()
    .in_place("out", "x");

}  // namespace
}  // namespace fleetx::ops
