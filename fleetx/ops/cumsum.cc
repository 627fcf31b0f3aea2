// cumsum: out[i] = x[0] + .. + x[i] along an axis; exclusive: without x[i]; reverse: from the end.
// dx = cumsum(dout) in the other direction. f32, f64, i32, i64.
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/copy_kernel.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const DType dtype = c.in("x").dtype;
  c.check(dtype == f32 || dtype == f64 || dtype == i32 || dtype == i64, c.show("x"),
          "; must be f32, f64, i32 or i64");
  (void)checked_axis(c, "x");
  c.out("out") = c.in("x");
}

void grad(ir::Grad& g) {
  ir::Attrs attrs = g.attrs();
  attrs.insert_or_assign("reverse", !g.attr<bool>("reverse"));
  g.set("x", g.op("cumsum", {{"x", g.dout("out")}}, attrs, {{"out", g.dx("x")}}));
}

template <class T>
class CumsumKernel final : public kernel::Kernel {
 public:
  explicit CumsumKernel(kernel::Prepare& p)
      : x_(p.input("x")), out_(p.output("out")), exclusive_(p.attr<bool>("exclusive")) {
    const Shape& x = p.in("x").shape;
    const int axis = normalize_axis(p.attr<int64_t>("axis"), x.rank());
    n_ = x[axis];
    inner_ = x.numel(axis + 1, x.rank());
    lines_ = x.numel(0, axis) * inner_;
    const bool reverse = p.attr<bool>("reverse");
    start_ = reverse ? (n_ - 1) * inner_ : 0;
    stride_ = reverse ? -inner_ : inner_;
  }

  void run(const kernel::Run& r) override {
    const T* x = r.in<T>(x_);
    T* out = r.out<T>(out_);
    parallel_for(lines_, (1 << 14) / (n_ + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        int64_t at = line / inner_ * n_ * inner_ + line % inner_ + start_;
        T sum{};
        for (int64_t i = 0; i < n_; ++i, at += stride_) {
          const T value = x[at];  // read first: out may lie on x
          out[at] = exclusive_ ? sum : sum + value;
          sum += value;
        }
      }
    });
  }

 private:
  kernel::Slot x_, out_;
  bool exclusive_;
  int64_t n_, inner_, lines_, start_, stride_;
};

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  switch (p.in("x").dtype) {
    case DType::kF64: return std::make_unique<CumsumKernel<double>>(p);
    case DType::kI32: return std::make_unique<CumsumKernel<int32_t>>(p);
    case DType::kI64: return std::make_unique<CumsumKernel<int64_t>>(p);
    default: return std::make_unique<CumsumKernel<float>>(p);
  }
}

FLEETX_OP(cumsum)
    .input("x")
    .output("out")
    .attr("axis", -1)
    .attr("exclusive", false)
    .attr("reverse", false)
    .infer(infer)
    .grad(grad)
    .kernel(make)
    .in_place("out", "x");

}  // namespace
}  // namespace fleetx::ops
