// conv2d_norm: a convolution with the batch norm of a test program behind it, and perhaps an
// addition. Written by the pass `fuse_conv_norm`; it has no gradient.
//   out = act((conv2d(x, w) - mean) * inv_std * scale + bias + residual),
//   inv_std = 1 / sqrt(variance + epsilon)
// Factor and shift of each channel are applied while a result is in registers; behind
// Winograd's algorithm and kernels of our own, which cannot do that, in one sweep.
#include <cmath>

#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/channels.h"
#include "fleetx/ops/lib/in_f32.h"
#include "fleetx/ops/lib/own_convolution.h"

namespace fleetx::ops {
namespace {

constexpr const char* kPerChannel[] = {"scale", "bias", "mean", "variance"};

void infer(ir::Infer& c) {
  check_conv2d(c);
  const Convolution g = conv2d_geometry(c);
  for (const char* slot : kPerChannel)
    c.check(c.in(slot).dtype == DType::kF32 && c.in(slot).shape == Shape{g.dst[1]}, c.show(slot),
            "; expected f32[", g.dst[1], "], one value per channel of the result");
  if (c.has("residual"))
    c.check(c.in("residual") == ir::TensorType{c.in("x").dtype, g.dst}, c.show("residual"),
            "; expected ", ir::TensorType{c.in("x").dtype, g.dst});
  c.check(c.attr<double>("epsilon") > 0, "epsilon is ", c.attr<double>("epsilon"),
          "; must be positive");
  c.out("out") = {c.in("x").dtype, g.dst};
}

ir::Cost cost(const ir::Infer& c) { return {.flops = conv2d_geometry(c).flops()}; }

class Conv2dNorm final : public kernel::Kernel {
 public:
  explicit Conv2dNorm(kernel::Prepare& p)
      : epsilon_(p.attr<double>("epsilon")),
        floor_(p.attr<std::string>("act") == "relu" ? 0.0f : -INFINITY),
        scale_(p.input("scale")),
        bias_(p.input("bias")),
        mean_(p.input("mean")),
        variance_(p.input("variance")) {
    const Convolution g = conv2d_geometry(p, p.out("out").shape);
    algorithm_ = own_algorithm(p, {{ConvPass::kForward}}, g);
    algorithm_ ? prepare_own(p, g) : prepare_onednn(p, g);
  }

  void run(const kernel::Run& r) override {
    float *factor = r.out<float>(factor_), *shift = r.out<float>(shift_);
    for (int64_t c = 0; c < channels_; ++c) {
      const double inv_std = 1.0 / std::sqrt(r.in<float>(variance_)[c] + epsilon_);
      factor[c] = static_cast<float>(inv_std * r.in<float>(scale_)[c]);
      shift[c] = static_cast<float>(r.in<float>(bias_)[c] -
                                    r.in<float>(mean_)[c] * inv_std * r.in<float>(scale_)[c]);
    }
    own_ ? own_->run(r) : conv_.run(r);
    if (sweep_) sweep(r);
  }
  std::string_view implementation() const override {
    return algorithm_ ? algorithm_->name : conv_.implementation();
  }

 private:
  void prepare_own(kernel::Prepare& p, const Convolution& g) {
    own_ = algorithm_->make(p, ConvPass::kForward, g, {});
    out_ = p.output("out", 0, algorithm_->activations);
    own_->bind(p.input("x", 0, algorithm_->activations), p.input("w", 0, algorithm_->weights),
               out_);
    prepare_sweep(p, g, algorithm_->activations);
  }

  void prepare_onednn(kernel::Prepare& p, const Convolution& g) {
    ConvChoice c = choose(p, ConvPass::kForward, g, conv2d_wishes(p));
    const bool apart = c.is_winograd() || !Channels::of(g.dst, c.dst);
    if (!apart) {
      // The same once more, with what follows.
      const bool relu = floor_ == 0.0f;
      c = choose(p, ConvPass::kForward, g, {{c.src, c.weights, c.dst}},
                 {.after = steps(p, g, c.dst), .relu = relu});
    }
    conv_ = onednn::Primitive(p, c.pd);
    out_ = p.output("out", 0, c.dst);
    conv_.arg(DNNL_ARG_SRC, p.input("x", 0, c.src), c.src_md)
        .arg(DNNL_ARG_WEIGHTS, p.input("w", 0, c.weights), c.weights_md)
        .arg(DNNL_ARG_DST, out_, c.dst_md);
    if (apart) return prepare_sweep(p, g, c.dst);
    prepare_coefficients(p, g.dst[1]);
    const auto per_channel = onednn::desc(DType::kF32, {1, g.dst[1], 1, 1});
    const auto operand = [](int step) {
      return DNNL_ARG_ATTR_MULTIPLE_POST_OP(step) | DNNL_ARG_SRC_1;
    };
    conv_.arg(operand(0), factor_, per_channel).arg(operand(1), shift_, per_channel);
    if (p.has("residual"))
      conv_.arg(operand(2), p.input("residual", 0, c.dst), onednn::desc(DType::kF32, g.dst, c.dst));
  }

  static dnnl::post_ops steps(const kernel::Prepare& p, const Convolution& g, const Layout& dst) {
    const auto per_channel = onednn::desc(DType::kF32, {1, g.dst[1], 1, 1});
    dnnl::post_ops after;
    after.append_binary(dnnl::algorithm::binary_mul, per_channel);
    after.append_binary(dnnl::algorithm::binary_add, per_channel);
    if (p.has("residual"))
      after.append_binary(dnnl::algorithm::binary_add, onednn::desc(DType::kF32, g.dst, dst));
    return after;
  }

  void prepare_coefficients(kernel::Prepare& p, int64_t padded) {
    channels_ = p.in("scale").shape[0];
    factor_ = p.scratch(static_cast<size_t>(padded) * sizeof(float));
    shift_ = p.scratch(static_cast<size_t>(padded) * sizeof(float));
  }

  void prepare_sweep(kernel::Prepare& p, const Convolution& g, const Layout& layout) {
    sweep_ = Channels::of(g.dst, layout);
    FLEETX_CHECK(sweep_, "no channels in ", layout);
    prepare_coefficients(p, sweep_->padded());
    residual_ = p.input("residual", 0, layout);
  }

  void sweep(const kernel::Run& r) {
    float *out = r.out<float>(out_), *factor = r.out<float>(factor_), *shift = r.out<float>(shift_);
    const float* residual = r.in<float>(residual_);
    std::fill(factor + channels_, factor + sweep_->padded(), 0.0f);
    std::fill(shift + channels_, shift + sweep_->padded(), 0.0f);
    Strips(*sweep_).for_each([=, floor = floor_](const Strip& s, auto lanes) {
      const float *f = factor + s.channel, *b = shift + s.channel;
      map_vectors(s, lanes, [=]<class T>(T, int64_t i, int l) {
        T y = load<T>(out + i) * load<T>(f + l) + load<T>(b + l);
        if (residual) y += load<T>(residual + i);
        store(out + i, T(y < floor ? T{} + floor : y));
      });
    });
  }

  double epsilon_;
  float floor_;
  int64_t channels_ = 0;
  kernel::Slot scale_, bias_, mean_, variance_, factor_, shift_, out_, residual_;
  std::optional<Channels> sweep_;
  onednn::Primitive conv_;
  const ConvAlgorithm* algorithm_ = nullptr;
  std::unique_ptr<OwnConvolution> own_;
};

FLEETX_OP(conv2d_norm)
    .input("x")
    .input("w")
    .input("scale")
    .input("bias")
    .input("mean")
    .input("variance")
    .input("residual", ir::Arity::kOptional)
    .output("out")
    .attr("stride", ir::Ints{1, 1})
    .attr("padding", ir::Ints{0, 0})
    .attr("dilation", ir::Ints{1, 1})
    .attr("groups", 1)
    .attr("epsilon", 1e-5)
    .attr("act", "")
    .infer(infer)
    .cost(cost)
    .kernel(also_half<make_new<Conv2dNorm>, kConvBySample>);

}  // namespace
}  // namespace fleetx::ops
