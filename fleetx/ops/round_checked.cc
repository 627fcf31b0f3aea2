// round_checked: out = x rounded to `dtype`, bf16 or f16; finite = whether out has neither NaN nor
// infinity, bool[1]. x is dense f32. What mixed precision does to a gradient that waits for all
// others to be checked: in one sweep, and then it takes half the memory. No gradient.
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/finite.h"
#include "fleetx/ops/lib/half.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const ir::TensorType& x = c.in("x");
  c.check(x.dtype == f32 && x.kind == ir::VarKind::kDense, c.show("x"), "; expected dense f32");
  const auto dtype = c.attr<DType>("dtype");
  c.check(is_half(dtype), "dtype is ", dtype, "; must be bf16 or f16");
  c.out("out") = {dtype, x.shape};
  c.out("finite") = {boolean, {1}};
}

class RoundChecked final : public kernel::Kernel {
 public:
  explicit RoundChecked(kernel::Prepare& p)
      : dtype_(p.out("out").dtype),
        n_(p.in("x").stored()),
        x_(p.input_as_is("x")),
        out_(p.output("out", 0, p.in("x").layout)),
        finite_(p.output("finite")) {}

  void run(const kernel::Run& r) override {
    constexpr int64_t kBlock = 4096;  // in the first-level cache
    const float* x = r.in<float>(x_);
    auto* out = r.out<uint16_t>(out_);
    bool finite = true;
    parallel_for(n_, 1 << 15, [&](int64_t begin, int64_t end) {
      bool good = true;
      for (int64_t at = begin; at < end; at += kBlock) {
        const int64_t n = std::min(kBlock, end - at);
        narrow(x + at, dtype_, out + at, n);
        good = all_finite(out + at, n, exponent_of(dtype_)) && good;
      }
      if (!good) {
#pragma omp atomic write
        finite = false;
      }
    });
    *r.out<bool>(finite_) = finite;
  }

 private:
  DType dtype_;
  int64_t n_;
  kernel::Slot x_, out_, finite_;
};

FLEETX_OP(round_checked)
    .input("x")
    .output("out")
    .output("finite")
    .required_attr("dtype", ir::AttrType::kString)
    .infer(infer)
    .kernel<RoundChecked>();

}  // namespace
}  // namespace fleetx::ops
