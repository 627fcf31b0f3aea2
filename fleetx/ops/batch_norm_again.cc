// batch_norm_again: the output of a batch_norm once more, from its input and the statistics that it
// saved. Written by the pass `recompute_cheap`, so that the output need not be kept for backward.
//   out = act((x - mean) * inv_std * scale + bias)
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/normalize.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const ir::TensorType& x = c.in("x");
  c.check(is_f32_or_half(x.dtype) && (x.shape.rank() == 2 || x.shape.rank() == 4), c.show("x"),
          "; expected f32, bf16 or f16 of rank 2 [N,C] or 4 [N,C,H,W]");
  for (const auto* slot : {"scale", "bias", "saved_mean", "saved_inv_std"})
    c.check(c.in(slot).dtype == DType::kF32 && c.in(slot).shape == Shape{x.shape[1]}, c.show(slot),
            "; expected f32[", x.shape[1], "], one value per channel of x");
  const auto act = c.attr<std::string>("act");
  c.check(act.empty() || act == "relu", "act is '", act, "'; known: '' and 'relu'");
  c.out("out") = x;
}

ir::Cost cost(const ir::Infer& c) {
  return {.flops = 3.0 * static_cast<double>(c.in("x").shape.numel())};
}

class BatchNormAgain final : public kernel::Kernel {
 public:
  explicit BatchNormAgain(kernel::Prepare& p)
      : layout_(channel_layout(p.in("x").shape, p.in("x").layout)),
        c_(*Channels::of(p.in("x").shape, layout_)),
        strips_(c_),
        dtype_(p.in("x").dtype),
        floor_(floor_of(p.attr<std::string>("act"))),
        x_(p.input("x", 0, layout_)),
        scale_(p.input("scale")),
        bias_(p.input("bias")),
        mean_(p.input("saved_mean")),
        inv_std_(p.input("saved_inv_std")),
        out_(p.output("out", 0, layout_)),
        coefficients_(p.scratch(static_cast<size_t>(3 * c_.padded()) * sizeof(float))) {}

  void run(const kernel::Run& r) override {
    float* mean = r.out<float>(coefficients_);
    float *factor = mean + c_.padded(), *bias = factor + c_.padded();
    std::fill(mean, mean + 3 * c_.padded(), 0.0f);
    for (int64_t c = 0; c < c_.channels; ++c) {
      mean[c] = r.in<float>(mean_)[c];
      factor[c] = r.in<float>(inv_std_)[c] * r.in<float>(scale_)[c];
      bias[c] = r.in<float>(bias_)[c];
    }
    with_storage(dtype_, [&](auto zero) {
      using S = decltype(zero);
      const Normalize<S> n{r.in<S>(x_), r.out<S>(out_), mean, factor, bias, floor_};
      if (n.past_caches(c_))
        strips_.for_each([n](const Strip& s, auto lanes) { n.template apply<true>(s, lanes); });
      else
        strips_.for_each([n](const Strip& s, auto lanes) { n.template apply<false>(s, lanes); });
    });
  }
  std::string_view implementation() const override { return "own:channels"; }

 private:
  Layout layout_;
  Channels c_;
  Strips strips_;
  DType dtype_;
  float floor_;
  kernel::Slot x_, scale_, bias_, mean_, inv_std_, out_, coefficients_;
};

FLEETX_OP(batch_norm_again)
    .input("x")
    .input("scale")
    .input("bias")
    .input("saved_mean")
    .input("saved_inv_std")
    .output("out")
    .attr("act", "")
    .infer(infer)
    .cost(cost)
    .kernel<BatchNormAgain>();

}  // namespace
}  // namespace fleetx::ops
