// conv2d: convolution (cross-correlation) of images.
//   x [N,C,H,W], w [O, C/groups, kh, kw], bias [O] -> out [N,O,h,w]
//   out[n,o,i,j] = act(bias[o] + sum_{c,a,b} w[o,c,a,b] * x[n, c, i*stride + a*dilation - top, ..])
//   h = (H + top + bottom - (dilation * (kh-1) + 1)) / stride + 1
//   channel groups do not mix
// padding is [height, width] or [top, bottom, left, right]; act is "" or "relu".
// dx, dw and dbias are the transposed sums; with relu, dout counts only where out > 0.
// x, out and their gradients are f32, bf16 or f16; w is f32 or as x, bias, dw and dbias are as w.
// Everyone gets the layout that oneDNN likes best; the plan reorders at the borders.
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/channels.h"
#include "fleetx/ops/lib/in_f32.h"
#include "fleetx/ops/lib/own_convolution.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  check_conv2d(c);
  const Convolution g = conv2d_geometry(c);
  if (c.has("bias"))
    c.check(c.in("bias") == ir::TensorType{c.in("w").dtype, {g.dst[1]}}, c.show("bias"),
            "; expected ", ir::TensorType{c.in("w").dtype, {g.dst[1]}});
  c.out("out") = {c.in("x").dtype, g.dst};
}

void grad(ir::Grad& g) {
  std::vector<ir::Dest> dests;
  for (const auto* slot : {"x", "w", "bias"})
    if (g.needs(slot)) dests.emplace_back(str("d", slot), g.dx(slot));
  const bool act = !g.attr<std::string>("act").empty();
  const ir::Results d = g.op("conv2d_grad",
                             {{"x", g.in("x")},
                              {"w", g.in("w")},
                              {"out", act ? g.out("out") : ir::Var()},
                              {"dout", g.dout("out")}},
                             g.attrs(), dests);
  for (const auto* slot : {"x", "w", "bias"})
    if (g.needs(slot)) g.set(slot, d[str("d", slot)]);
}

ir::Cost cost(const ir::Infer& c) { return {.flops = conv2d_geometry(c).flops()}; }

// The weights of a computation in bf16: they stand in f32, with all their bits, or in bf16.
kernel::Slot bf16_weights(kernel::Prepare& p, const Convolution& g, const ConvChoice& c,
                          onednn::Primitive& pack) {
  if (p.in("w").dtype == bf16) return p.input("w", 0, c.weights);
  const auto from = weights_desc(g, f32, p.in("w").layout);
  const kernel::Slot packed = p.scratch(c.weights_md.get_size()),
                     w = from ? p.input_as_is("w") : p.input("w");
  pack = onednn::reorder(p, w, from ? *from : *weights_desc(g, f32, Layout::plain()), packed,
                         c.weights_md);
  return packed;
}

// In the types of the op's arguments.
Convolution geometry(const kernel::Prepare& p, const Shape& dst) {
  Convolution g = conv2d_geometry(p, dst);
  g.dtype = p.in("x").dtype;
  g.dweights_type = p.in("w").dtype;
  return g;
}

class Conv2d final : public kernel::Kernel {
 public:
  explicit Conv2d(kernel::Prepare& p) {
    const Convolution g = geometry(p, p.out("out").shape);
    const ConvOptions options{.bias = p.has("bias"), .relu = p.attr<std::string>("act") == "relu"};
    if (g.dtype == f32 && (algorithm_ = own_algorithm(p, {{ConvPass::kForward}}, g))) {
      own_ = algorithm_->make(p, ConvPass::kForward, g, options);
      own_->bind(p.input("x", 0, algorithm_->activations), p.input("w", 0, algorithm_->weights),
                 p.output("out", 0, algorithm_->activations), p.input("bias"));
      return;
    }
    const ConvChoice c = choose(p, ConvPass::kForward, g, conv2d_wishes(p), options);
    conv_ = onednn::Primitive(p, c.pd);
    const kernel::Slot w =
        g.dtype == bf16 ? bf16_weights(p, g, c, pack_) : p.input("w", 0, c.weights);
    conv_.arg(DNNL_ARG_SRC, p.input("x", 0, c.src), c.src_md)
        .arg(DNNL_ARG_WEIGHTS, w, c.weights_md)
        .arg(DNNL_ARG_BIAS, p.input("bias"), c.pd.query_md(dnnl::query::weights_md, 1))
        .arg(DNNL_ARG_DST, p.output("out", 0, c.dst), c.dst_md);
  }
  void run(const kernel::Run& r) override {
    if (pack_) pack_.run(r);
    own_ ? own_->run(r) : conv_.run(r);
  }
  std::string_view implementation() const override {
    return algorithm_ ? algorithm_->name : conv_.implementation();
  }

 private:
  onednn::Primitive pack_, conv_;
  const ConvAlgorithm* algorithm_ = nullptr;
  std::unique_ptr<OwnConvolution> own_;
};

void infer_grad(ir::Infer& c) {
  check_conv2d(c);
  const Convolution g = conv2d_geometry(c);
  const ir::TensorType out{c.in("x").dtype, g.dst};
  c.check(c.by_example() || c.in("dout") == out, c.show("dout"), "; expected ", out);
  const bool act = !c.attr<std::string>("act").empty();
  c.check(!act || (c.has("out") && c.in("out") == c.in("dout")), c.show("out"),
          "; with an act it must be given, like dout");
  if (c.out_count("dx") > 0) c.out("dx") = c.in("x");
  if (c.out_count("dw") > 0) c.out("dw") = c.in("w");
  if (c.out_count("dbias") > 0) c.out("dbias") = {c.in("w").dtype, {g.dst[1]}};
}

ir::Cost cost_grad(const ir::Infer& c) {
  const double dw = c.out_count("dw") + c.out_count("dbias") > 0 ? 1 : 0;
  return {.flops = (static_cast<double>(c.out_count("dx")) + dw) * conv2d_geometry(c).flops()};
}

class Conv2dGrad final : public kernel::Kernel {
 public:
  explicit Conv2dGrad(kernel::Prepare& p) {
    const Convolution g = geometry(p, p.in("dout").shape);
    if (!p.has_out("dx")) p.input_as_is("w");  // what is not read may stay as it is
    if (!p.has_out("dw") && !p.has_out("dbias")) p.input_as_is("x");
    const std::vector<ConvPass> passes = passes_of(p);
    if (passes.empty()) return;
    if (g.dtype == f32) algorithm_ = own_algorithm(p, passes, g);
    algorithm_ ? prepare_own(p, g) : prepare_onednn(p, g);
    implementation_ =
        algorithm_ ? std::string(algorithm_->name) : onednn::names_of(weights_, "dx", data_);
  }

  static std::vector<ConvPass> passes_of(const kernel::Prepare& p) {
    std::vector<ConvPass> passes;
    if (p.has_out("dw") || p.has_out("dbias")) passes.push_back(ConvPass::kWeights);
    if (p.has_out("dx")) passes.push_back(ConvPass::kData);
    return passes;
  }

  void run(const kernel::Run& r) override {
    if (masked_) mask(r);
    if (pack_) pack_.run(r);
    if (turn_) turn_.run(r);
    if (data_) data_.run(r);
    if (weights_) weights_.run(r);
    if (own_data_) own_data_->run(r);
    if (own_weights_) own_weights_->run(r);
    if (partial_)
      channel_sums(*channels_, r.in<float>(masked_ ? masked_ : dout_), r.out<float>(partial_),
                   r.out<float>(dbias_));
  }
  std::string_view implementation() const override { return implementation_; }

 private:
  void prepare_onednn(kernel::Prepare& p, const Convolution& g) {
    std::optional<ConvChoice> weights, data;
    if (p.has_out("dw") || p.has_out("dbias"))
      weights = choose(p, ConvPass::kWeights, g, conv2d_wishes(p), {.bias = p.has_out("dbias")});
    if (p.has_out("dx")) {
      // Both read dout in one layout, unless it would make this one slow.
      data = choose(p, ConvPass::kData, g,
                    conv2d_wishes(p, weights ? std::optional(weights->dst) : std::nullopt));
      if (weights && data->share < kSlow) {
        ConvChoice alone = choose(p, ConvPass::kData, g, conv2d_wishes(p));
        if (alone.share > 2 * data->share) data = std::move(alone);
      }
    }
    const kernel::Slot dout = gradient(p, g, weights ? weights->dst : data->dst);
    // One after the other, they use the same memory.
    const kernel::Slot scratch =
        onednn::scratch_for(p, {data ? data->pd.scratchpad_desc().get_size() : 0,
                                weights ? weights->pd.scratchpad_desc().get_size() : 0});
    if (data) {
      data_ = onednn::Primitive(p, data->pd, scratch);
      data_.arg(DNNL_ARG_DIFF_DST, weights ? turned(p, dout, *weights, *data) : dout, data->dst_md)
          .arg(DNNL_ARG_WEIGHTS, packed_weights(p, g, *data), data->weights_md)
          .arg(DNNL_ARG_DIFF_SRC, p.output("dx", 0, data->src), data->src_md);
    }
    if (weights) {
      // Where only dbias is wanted, dw goes nowhere.
      const kernel::Slot dw = p.has_out("dw") ? p.output("dw", 0, weights->weights)
                                              : p.scratch(weights->weights_md.get_size());
      weights_ = onednn::Primitive(p, weights->pd, scratch);
      weights_.arg(DNNL_ARG_SRC, p.input("x", 0, weights->src), weights->src_md)
          .arg(DNNL_ARG_DIFF_DST, dout, weights->dst_md)
          .arg(DNNL_ARG_DIFF_WEIGHTS, dw, weights->weights_md)
          .arg(DNNL_ARG_DIFF_BIAS, p.output("dbias"),
               weights->pd.query_md(dnnl::query::diff_weights_md, 1));
    }
  }

  // dout as the gradient of x reads it.
  kernel::Slot turned(kernel::Prepare& p, kernel::Slot dout, const ConvChoice& weights,
                      const ConvChoice& data) {
    if (weights.dst == data.dst) return dout;
    const kernel::Slot copy = p.scratch(data.dst_md.get_size());
    turn_ = onednn::reorder(p, dout, weights.dst_md, copy, data.dst_md);
    return copy;
  }

  // The weights stand as forward reads them, vectors of outputs; dx wants vectors of inputs. Like
  // the panels of a matrix product they are packed anew in every step (0.5 % of its time).
  kernel::Slot packed_weights(kernel::Prepare& p, const Convolution& g, const ConvChoice& data) {
    if (g.dtype == bf16) return bf16_weights(p, g, data, pack_);
    const Layout& stands = p.in("w").layout;
    const auto from = weights_desc(g, f32, stands);
    if (stands == data.weights || !from) return p.input("w", 0, data.weights);
    const kernel::Slot packed = p.scratch(data.weights_md.get_size());
    pack_ = onednn::reorder(p, p.input_as_is("w"), *from, packed, data.weights_md);
    return packed;
  }

  void prepare_own(kernel::Prepare& p, const Convolution& g) {
    const kernel::Slot dout = gradient(p, g, algorithm_->activations);
    if (p.has_out("dx")) {
      own_data_ = algorithm_->make(p, ConvPass::kData, g, {});
      own_data_->bind(p.output("dx", 0, algorithm_->activations),
                      p.input("w", 0, algorithm_->weights), dout);
    }
    if (p.has_out("dw")) {
      own_weights_ = algorithm_->make(p, ConvPass::kWeights, g, {});
      own_weights_->bind(p.input("x", 0, algorithm_->activations),
                         p.output("dw", 0, algorithm_->weights), dout);
    } else if (p.has_out("dbias")) {
      p.input_as_is("x");
    }
    if (p.has_out("dbias")) {
      channels_ = Channels::of(g.dst, algorithm_->activations);
      partial_ = p.scratch(static_cast<size_t>(Strips(*channels_).pieces() * channels_->padded()) *
                           sizeof(float));
      dbias_ = p.output("dbias");
    }
  }

  // dout in this layout, less what relu did not let pass.
  kernel::Slot gradient(kernel::Prepare& p, const Convolution& g, const Layout& layout) {
    dout_ = p.input("dout", 0, layout);
    if (p.attr<std::string>("act").empty()) return dout_;
    out_ = p.input("out", 0, layout);
    stored_ = layout.stored(g.dst);
    masked_ = p.scratch(static_cast<size_t>(stored_) * sizeof(float));
    return masked_;
  }

  void mask(const kernel::Run& r) const {
    const float *out = r.in<float>(out_), *dout = r.in<float>(dout_);
    float* masked = r.out<float>(masked_);
    parallel_for(stored_, 1 << 15, [=](int64_t begin, int64_t end) {
      vectorized([=] {
        for (int64_t i = begin; i < end; ++i) masked[i] = out[i] > 0 ? dout[i] : 0.0f;
      });
    });
  }

  onednn::Primitive pack_, turn_, data_, weights_;
  std::string implementation_;
  const ConvAlgorithm* algorithm_ = nullptr;
  std::unique_ptr<OwnConvolution> own_data_, own_weights_;
  std::optional<Channels> channels_;
  kernel::Slot out_, dout_, masked_, partial_, dbias_;
  int64_t stored_ = 0;
};

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  if (!has_half(p) ||
      computes_in_bf16(p, {{ConvPass::kForward}}, conv2d_geometry(p, p.out("out").shape)))
    return make_new<Conv2d>(p);
  return make_in_f32(p, make_new<Conv2d>, kConvBySample);
}

std::unique_ptr<kernel::Kernel> make_grad(kernel::Prepare& p) {
  // What relu did not let pass is taken away in f32.
  const bool act = !p.attr<std::string>("act").empty();
  if (!has_half(p) || (!act && computes_in_bf16(p, Conv2dGrad::passes_of(p),
                                                conv2d_geometry(p, p.in("dout").shape))))
    return make_new<Conv2dGrad>(p);
  return make_in_f32(p, make_new<Conv2dGrad>, kConvBySample);
}

FLEETX_OP(conv2d)
    .input("x")
    .input("w")
    .input("bias", ir::Arity::kOptional)
    .output("out")
    .attr("stride", ir::Ints{1, 1})
    .attr("padding", ir::Ints{0, 0})
    .attr("dilation", ir::Ints{1, 1})
    .attr("groups", 1)
    .attr("act", "")
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel(make);

FLEETX_OP(conv2d_grad)
    .input("x")
    .input("w")
    .input("out", ir::Arity::kOptional)
    .input("dout")
    .output("dx", ir::Arity::kOptional)
    .output("dw", ir::Arity::kOptional)
    .output("dbias", ir::Arity::kOptional)
    .attr("stride", ir::Ints{1, 1})
    .attr("padding", ir::Ints{0, 0})
    .attr("dilation", ir::Ints{1, 1})
    .attr("groups", 1)
    .attr("act", "")
    .infer(infer_grad)
    .cost(cost_grad)
    .kernel(make_grad);

}  // namespace
}  // namespace fleetx::ops
