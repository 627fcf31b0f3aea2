// print: out = x, and a line on standard output: message, name, dtype, shape and the first
// `summarize` values (-1: all), in the first `first_n` runs of the plan (-1: always).
//
//   loss is mean_0.tmp_0 f32[1]: 2.30258
//
// dx = dout; the gradient is not printed.
#include <cstdio>
#include <cstring>

#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) { c.out("out") = c.in("x"); }

void grad(ir::Grad& g) { g.set("x", g.dout("out")); }

class PrintKernel final : public kernel::Kernel {
 public:
  explicit PrintKernel(kernel::Prepare& p)
      : left_(p.attr<int64_t>("first_n")),
        x_(p.input("x")),
        out_(p.output("out")),
        dtype_(p.in("x").dtype),
        n_(p.in("x").numel()),
        bytes_(p.in("x").bytes()) {
    const auto message = p.attr<std::string>("message");
    const auto most = p.attr<int64_t>("summarize");
    shown_ = most < 0 ? n_ : std::min(n_, most);
    head_ = str(message, message.empty() ? "" : " ", p.op().in("x")[0], " ", dtype_,
                p.in("x").shape, ":");
  }

  void run(const kernel::Run& r) override {
    if (r.raw(x_) != r.raw(out_)) std::memcpy(r.raw(out_), r.raw(x_), bytes_);
    if (left_ == 0) return;
    if (left_ > 0) --left_;
    std::fputs(head_.c_str(), stdout);
    with_type(dtype_, [&](auto zero) {
      const auto* x = r.in<decltype(zero)>(x_);
      for (int64_t i = 0; i < shown_; ++i) show(x[i]);
    });
    std::fputs(shown_ < n_ ? " ...\n" : "\n", stdout);
    std::fflush(stdout);
  }

 private:
  static void show(double v) { std::printf(" %g", v); }
  static void show(float v) { std::printf(" %g", static_cast<double>(v)); }
  static void show(int64_t v) { std::printf(" %lld", static_cast<long long>(v)); }
  static void show(int32_t v) { std::printf(" %d", v); }
  static void show(uint8_t v) { std::printf(" %d", v); }
  static void show(bool v) { std::fputs(v ? " true" : " false", stdout); }
  static void show(Half v) { show(static_cast<float>(v)); }
  static void show(BFloat16 v) { show(static_cast<float>(v)); }

  std::string head_;
  int64_t left_, shown_;
  kernel::Slot x_, out_;
  DType dtype_;
  int64_t n_;
  size_t bytes_;
};

FLEETX_OP(print)
    .input("x")
    .output("out")
    .attr("message", "")
    .attr("first_n", -1)
    .attr("summarize", 20)
    .infer(infer)
    .grad(grad)
    .kernel<PrintKernel>()
    .side_effect()
    .in_place("out", "x");

}  // namespace
}  // namespace fleetx::ops
