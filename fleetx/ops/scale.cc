// scale: out = scale * x + bias, or scale * (x + bias) with bias_after_scale=false. Any shape;
// float or integer. dx = scale * dout.
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"

namespace fleetx {
namespace {

void infer(ir::Infer& c) { c.out("out") = c.in("x"); }

void grad(ir::Grad& g) {
  g.set("x", g.op("scale", {{"x", g.dout("out")}}, {{"scale", g.attr<double>("scale")}},
                  {{"out", g.dx("x")}}));
}

ir::Cost cost(const ir::Infer& c) {
  return {.flops = 2.0 * static_cast<double>(c.in("x").shape.numel())};
}

template <class T>
class ScaleKernel final : public kernel::Kernel {
 public:
  explicit ScaleKernel(kernel::Prepare& p)
      : scale_(p.attr<double>("scale")),
        offset_(p.attr<double>("bias") * (p.attr<bool>("bias_after_scale") ? 1.0 : scale_)) {
    // Padding must stay zero, so an offset asks for row-major memory.
    const Layout layout = offset_ == 0 ? p.in("x").layout : Layout::plain();
    x_ = p.input("x", 0, layout);
    out_ = p.output("out", 0, layout);
    n_ = layout.stored(p.in("x").shape);
  }

  void run(const kernel::Run& r) override {
    const T* x = r.in<T>(x_);
    T* out = r.out<T>(out_);
    const auto scale = static_cast<T>(scale_), offset = static_cast<T>(offset_);
    parallel_for(n_, 1 << 15, [&](int64_t begin, int64_t end) {
      vectorized([=] {
        for (int64_t i = begin; i < end; ++i) out[i] = static_cast<T>(scale * x[i] + offset);
      });
    });
  }

 private:
  double scale_, offset_;
  kernel::Slot x_, out_;
  int64_t n_;
};

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  switch (p.in("x").dtype) {
    case DType::kF32: return std::make_unique<ScaleKernel<float>>(p);
    case DType::kF64: return std::make_unique<ScaleKernel<double>>(p);
    case DType::kI32: return std::make_unique<ScaleKernel<int32_t>>(p);
    case DType::kI64: return std::make_unique<ScaleKernel<int64_t>>(p);
    default:
      fail(Error::Kind::kUnsupported, str(ir::describe(p.op()), "no kernel for ", p.in("x").dtype));
  }
}

FLEETX_OP(scale)
    .input("x")
    .output("out")
    .attr("scale", 1.0)
    .attr("bias", 0.0)
    .attr("bias_after_scale", true)
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel(make)
    .in_place("out", "x");

}  // namespace
}  // namespace fleetx
