// conv2d_transpose: the transpose of conv2d, for learned up-sampling.
//   x [N,C,h,w], w [C, O/groups, kh, kw], bias [O] -> out [N,O,H,W]
//   out[n, o, i*stride + a*dilation - padding, ...] += x[n,c,i,j] * w[c,o,a,b], then bias is added
//   H = (h-1) * stride - top - bottom + dilation * (kh-1) + 1 + output_padding
// As it is the gradient of a convolution from out to x, its forward is that convolution's backward
// to the data, and its own gradients are a convolution (dx) and its backward to the weights (dw).
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/channels.h"
#include "fleetx/ops/lib/in_f32.h"
#include "fleetx/ops/lib/own_convolution.h"

namespace fleetx::ops {
namespace {

Convolution geometry(const ir::Infer& c) {
  Convolution g = convolution_attrs(c);
  g.dst = c.in("x").shape;
  g.weights = c.in("w").shape;
  g.src = {g.dst[0], g.weights[1] * g.groups, 0, 0};
  const auto extra = c.attr<ir::Ints>("output_padding");
  for (int i = 0; i < 2; ++i) {
    const auto d = static_cast<size_t>(i);
    g.src[2 + i] = (g.dst[2 + i] - 1) * g.stride[d] - g.pad_before[d] - g.pad_after[d] +
                   g.dilation[d] * (g.weights[2 + i] - 1) + 1 + extra[d];
    c.check(g.src[2 + i] >= 1, c.show("x"), ", ", c.show("w"), "; out would have ", g.src[2 + i],
            " places in dimension ", 2 + i);
  }
  return g;
}

Convolution geometry(const kernel::Prepare& p, const Shape& out) {
  Convolution g = convolution_attrs(p);
  g.src = out;
  g.weights = p.in("w").shape;
  g.dst = p.in("x").shape;
  return with_rows(g);
}

void check(const ir::Infer& c) {
  check_convolution(c);
  const Shape &x = c.in("x").shape, &w = c.in("w").shape;
  c.check(x[1] == w[0], c.show("x"), ", ", c.show("w"), "; x has ", x[1], " channels, w expects ",
          w[0]);
  const auto extra = c.attr<ir::Ints>("output_padding");
  c.check(extra.size() == 2, "output_padding has ", extra.size(), " numbers; expected 2");
  const auto stride = c.attr<ir::Ints>("stride"), dilation = c.attr<ir::Ints>("dilation");
  for (size_t i = 0; i < 2; ++i)
    c.check(extra[i] >= 0 && extra[i] < std::max(stride[i], dilation[i]), "output_padding is ",
            extra[i], "; must be at least 0 and less than stride ", stride[i], " or dilation ",
            dilation[i]);
}

void infer(ir::Infer& c) {
  check(c);
  const Convolution g = geometry(c);
  if (c.has("bias"))
    c.check(c.in("bias") == ir::TensorType{c.in("w").dtype, {g.src[1]}}, c.show("bias"),
            "; expected ", ir::TensorType{c.in("w").dtype, {g.src[1]}});
  c.out("out") = {c.in("x").dtype, g.src};
}

void grad(ir::Grad& g) {
  std::vector<ir::Dest> dests;
  for (const auto* slot : {"x", "w", "bias"})
    if (g.needs(slot)) dests.emplace_back(str("d", slot), g.dx(slot));
  const ir::Results d =
      g.op("conv2d_transpose_grad", {{"x", g.in("x")}, {"w", g.in("w")}, {"dout", g.dout("out")}},
           g.attrs(), dests);
  for (const auto* slot : {"x", "w", "bias"})
    if (g.needs(slot)) g.set(slot, d[str("d", slot)]);
}

ir::Cost cost(const ir::Infer& c) { return {.flops = geometry(c).flops()}; }

std::vector<ConvLayouts> wishes(const kernel::Prepare& p, std::optional<Layout> src = {}) {
  std::vector<ConvLayouts> list;
  if (!p.in("w").layout.is_plain()) list.push_back({src, p.in("w").layout, {}});
  list.push_back({src, {}, {}});
  return list;
}

class Conv2dTranspose final : public kernel::Kernel {
 public:
  explicit Conv2dTranspose(kernel::Prepare& p) {
    const Convolution g = geometry(p, p.out("out").shape);
    Layout layout;
    if ((algorithm_ = plane_algorithm(p, {{ConvPass::kData}}, g))) {
      layout = algorithm_->activations;
      out_ = p.output("out", 0, layout);
      own_ = algorithm_->make(p, ConvPass::kData, g, {});
      own_->bind(out_, p.input("w", 0, algorithm_->weights), p.input("x", 0, layout));
    } else {
      const ConvChoice c = choose(p, ConvPass::kData, g, wishes(p));
      layout = c.src;
      out_ = p.output("out", 0, layout);
      conv_ = onednn::Primitive(p, c.pd);
      conv_.arg(DNNL_ARG_DIFF_DST, p.input("x", 0, c.dst), c.dst_md)
          .arg(DNNL_ARG_WEIGHTS, p.input("w", 0, c.weights), c.weights_md)
          .arg(DNNL_ARG_DIFF_SRC, out_, c.src_md);
    }
    channels_ = Channels::of(g.src, layout);
    FLEETX_CHECK(channels_, "layout ", layout, " of out");
    bias_ = p.input("bias");
    if (bias_) padded_bias_ = p.scratch(static_cast<size_t>(channels_->padded()) * sizeof(float));
  }

  void run(const kernel::Run& r) override {
    own_ ? own_->run(r) : conv_.run(r);
    if (!bias_) return;
    float *bias = r.out<float>(padded_bias_), *out = r.out<float>(out_);
    std::fill(bias, bias + channels_->padded(), 0.0f);
    std::copy(r.in<float>(bias_), r.in<float>(bias_) + channels_->channels, bias);
    Strips(*channels_).for_each([=](const Strip& s, auto lanes) {
      const float* b = bias + s.channel;
      map_strip(s, lanes, [=](int64_t i, int l) { out[i] += b[l]; });
    });
  }
  std::string_view implementation() const override {
    return algorithm_ ? algorithm_->name : conv_.implementation();
  }

 private:
  onednn::Primitive conv_;
  const ConvAlgorithm* algorithm_ = nullptr;
  std::unique_ptr<OwnConvolution> own_;
  std::optional<Channels> channels_;
  kernel::Slot out_, bias_, padded_bias_;
};

void infer_grad(ir::Infer& c) {
  check(c);
  const Convolution g = geometry(c);
  const ir::TensorType out{c.in("x").dtype, g.src};
  c.check(c.by_example() || c.in("dout") == out, c.show("dout"), "; expected ", out);
  if (c.out_count("dx") > 0) c.out("dx") = c.in("x");
  if (c.out_count("dw") > 0) c.out("dw") = c.in("w");
  if (c.out_count("dbias") > 0) c.out("dbias") = {c.in("w").dtype, {g.src[1]}};
}

ir::Cost cost_grad(const ir::Infer& c) {
  return {.flops =
              static_cast<double>(c.out_count("dx") + c.out_count("dw")) * geometry(c).flops()};
}

class Conv2dTransposeGrad final : public kernel::Kernel {
 public:
  explicit Conv2dTransposeGrad(kernel::Prepare& p) {
    const Convolution g = geometry(p, p.in("dout").shape);
    if (!p.has_out("dx")) p.input_as_is("w");  // what is not read may stay as it is
    if (!p.has_out("dw")) p.input_as_is("x");
    std::vector<ConvPass> passes;
    if (p.has_out("dw")) passes.push_back(ConvPass::kWeights);
    if (p.has_out("dx")) passes.push_back(ConvPass::kForward);
    algorithm_ = plane_algorithm(p, passes, g);
    algorithm_ ? prepare_own(p, g) : prepare_onednn(p, g);
    dbias_ = p.output("dbias");
    if (dbias_)
      partial_ = p.scratch(static_cast<size_t>(Strips(*channels_).pieces() * channels_->padded()) *
                           sizeof(float));
  }

  void run(const kernel::Run& r) override {
    if (turn_) turn_.run(r);
    if (data_) data_.run(r);
    if (weights_) weights_.run(r);
    if (own_data_) own_data_->run(r);
    if (own_weights_) own_weights_->run(r);
    if (dbias_)
      channel_sums(*channels_, r.in<float>(dout_), r.out<float>(partial_), r.out<float>(dbias_));
  }
  std::string_view implementation() const override { return implementation_; }

 private:
  void prepare_own(kernel::Prepare& p, const Convolution& g) {
    dout_ = p.input("dout", 0, algorithm_->activations);
    channels_ = Channels::of(g.src, algorithm_->activations);
    implementation_ = algorithm_->name;
    if (p.has_out("dx")) {
      own_data_ = algorithm_->make(p, ConvPass::kForward, g, {});
      own_data_->bind(dout_, p.input("w", 0, algorithm_->weights),
                      p.output("dx", 0, algorithm_->activations));
    }
    if (p.has_out("dw")) {
      own_weights_ = algorithm_->make(p, ConvPass::kWeights, g, {});
      own_weights_->bind(dout_, p.output("dw", 0, algorithm_->weights),
                         p.input("x", 0, algorithm_->activations));
    }
  }

  void prepare_onednn(kernel::Prepare& p, const Convolution& g) {
    std::optional<ConvChoice> weights, data;
    if (p.has_out("dw")) weights = choose(p, ConvPass::kWeights, g, wishes(p));
    if (p.has_out("dx")) {
      // Both read dout in one layout, unless it would make this one slow.
      data = choose(p, ConvPass::kForward, g,
                    wishes(p, weights ? std::optional(weights->src) : std::nullopt));
      if (weights && data->share < kSlow) {
        ConvChoice alone = choose(p, ConvPass::kForward, g, wishes(p));
        if (alone.share > 2 * data->share) data = std::move(alone);
      }
    }
    const Layout layout = weights ? weights->src : data ? data->src : Layout::plain();
    channels_ = Channels::of(g.src, layout);
    FLEETX_CHECK(channels_, "layout ", layout, " of dout");
    dout_ = p.input("dout", 0, layout);
    if (data) {
      kernel::Slot dout = dout_;
      if (data->src != layout) {
        dout = p.scratch(data->src_md.get_size());
        turn_ = onednn::reorder(p, dout_, weights->src_md, dout, data->src_md);
      }
      data_ = onednn::Primitive(p, data->pd);
      data_.arg(DNNL_ARG_SRC, dout, data->src_md)
          .arg(DNNL_ARG_WEIGHTS, p.input("w", 0, data->weights), data->weights_md)
          .arg(DNNL_ARG_DST, p.output("dx", 0, data->dst), data->dst_md);
    }
    if (weights) {
      weights_ = onednn::Primitive(p, weights->pd);
      weights_.arg(DNNL_ARG_SRC, dout_, weights->src_md)
          .arg(DNNL_ARG_DIFF_DST, p.input("x", 0, weights->dst), weights->dst_md)
          .arg(DNNL_ARG_DIFF_WEIGHTS, p.output("dw", 0, weights->weights), weights->weights_md);
    }
    implementation_ =
        weights || data ? onednn::names_of(weights_, "dx", data_) : std::string("own:channels");
  }

  onednn::Primitive turn_, data_, weights_;
  const ConvAlgorithm* algorithm_ = nullptr;
  std::unique_ptr<OwnConvolution> own_data_, own_weights_;
  std::string implementation_;
  std::optional<Channels> channels_;
  kernel::Slot dout_, dbias_, partial_;
};

FLEETX_OP(conv2d_transpose)
    .input("x")
    .input("w")
    .input("bias", ir::Arity::kOptional)
    .output("out")
    .attr("stride", ir::Ints{1, 1})
    .attr("padding", ir::Ints{0, 0})
    .attr("output_padding", ir::Ints{0, 0})
    .attr("dilation", ir::Ints{1, 1})
    .attr("groups", 1)
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel(also_half<make_new<Conv2dTranspose>, kConvBySample>);

FLEETX_OP(conv2d_transpose_grad)
    .input("x")
    .input("w")
    .input("dout")
    .output("dx", ir::Arity::kOptional)
    .output("dw", ir::Arity::kOptional)
    .output("dbias", ir::Arity::kOptional)
    .attr("stride", ir::Ints{1, 1})
    .attr("padding", ir::Ints{0, 0})
    .attr("output_padding", ir::Ints{0, 0})
    .attr("dilation", ir::Ints{1, 1})
    .attr("groups", 1)
    .infer(infer_grad)
    .cost(cost_grad)
    .kernel(also_half<make_new<Conv2dTransposeGrad>, kConvBySample>);

}  // namespace
}  // namespace fleetx::ops
