// cast: out = x in another dtype, from any to any. Floats to integers are cut towards zero;
// anything but 0 is true; f16 and bf16 round to nearest even.   dx = dout cast back.
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) { c.out("out") = {c.attr<DType>("dtype"), c.in("x").shape}; }

void grad(ir::Grad& g) {
  g.set("x",
        g.op("cast", {{"x", g.dout("out")}}, {{"dtype", g.in("x").dtype()}}, {{"out", g.dx("x")}}));
}

template <class From, class To>
void convert(const From* x, To* out, int64_t n) {
  constexpr bool kHalf = sizeof(From) == 2 || sizeof(To) == 2;
  // Integers reach a half by way of float, as its constructor takes no other number.
  using Between = std::conditional_t<kHalf, float, To>;
  const auto loop = [=] {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<To, bool>)
        out[i] = static_cast<std::conditional_t<kHalf, float, From>>(x[i]) != 0;
      else
        out[i] = static_cast<To>(static_cast<Between>(x[i]));
    }
  };
  if constexpr (std::is_same_v<From, float> || std::is_same_v<To, float>)
    vectorized(loop);
  else
    loop();
}

class CastKernel final : public kernel::Kernel {
 public:
  explicit CastKernel(kernel::Prepare& p)
      : x_(p.input_as_is("x")),
        out_(p.output("out", 0, p.in("x").layout)),
        from_(p.in("x").dtype),
        to_(p.out("out").dtype),
        n_(p.in("x").stored()) {}

  void run(const kernel::Run& r) override {
    with_type(from_, [&](auto from_zero) {
      with_type(to_, [&](auto to_zero) {
        using From = decltype(from_zero);
        using To = decltype(to_zero);
        const From* x = r.in<From>(x_);
        To* out = r.out<To>(out_);
        parallel_for(n_, 1 << 15, [=](int64_t begin, int64_t end) {
          convert(x + begin, out + begin, end - begin);
        });
      });
    });
  }

 private:
  kernel::Slot x_, out_;
  DType from_, to_;
  int64_t n_;
};

FLEETX_OP(cast)
    .input("x")
    .output("out")
    .required_attr("dtype", ir::AttrType::kString)
    .infer(infer)
    .grad(grad)
    .kernel<CastKernel>();

}  // namespace
}  // namespace fleetx::ops
