// batch_norm: each channel of x [N,C] or [N,C,H,W] brought to mean 0 and variance 1 over the batch,
// then scaled and shifted; act "relu" is applied to the result.
//   out = act((x - mean) * inv_std * scale + bias),  inv_std = 1 / sqrt(variance + epsilon)
//   mean_out = momentum * mean + (1 - momentum) * batch mean, and so the variance (the biased one)
// With is_test or use_global_stats the running mean and variance are used and stay as they are.
// With g = dout where act let it pass, M = N*H*W, sums over a channel:
//   dbias = sum g, dscale = inv_std * sum g * (x - mean)
//   dx = scale * inv_std * (g - dbias / M - (x - mean) * inv_std * dscale / M)   (batch statistics)
//   dx = scale * inv_std * g                                                    (global statistics)
// The sign that relu saw is computed again from x: cheaper than reading out.
#include <cmath>

#include "fleetx/kernel/op.h"
#include "fleetx/ops/channels.h"

namespace fleetx {
namespace {

void check_per_channel(const ir::Infer& c, std::string_view slot) {
  c.check(c.in(slot).dtype == DType::kF32 && c.in(slot).shape == Shape{c.in("x").shape[1]},
          c.show(slot), "; expected f32[", c.in("x").shape[1], "], one value per channel of x");
}

void check_x(const ir::Infer& c) {
  const ir::TensorType& x = c.in("x");
  c.check(x.dtype == DType::kF32 && (x.shape.rank() == 2 || x.shape.rank() == 4), c.show("x"),
          "; expected f32 of rank 2 [N,C] or 4 [N,C,H,W]");
  c.check(c.attr<double>("epsilon") > 0, "epsilon is ", c.attr<double>("epsilon"),
          "; must be positive");
  const auto act = c.attr<std::string>("act");
  c.check(act.empty() || act == "relu", "act is '", act, "'; known: '' and 'relu'");
}

void infer(ir::Infer& c) {
  check_x(c);
  for (const auto* slot : {"scale", "bias", "mean", "variance"}) check_per_channel(c, slot);
  const double momentum = c.attr<double>("momentum");
  c.check(momentum >= 0 && momentum <= 1, "momentum is ", momentum, "; must be in [0, 1]");
  c.out("out") = c.in("x");
  for (const auto* slot : {"mean_out", "variance_out", "saved_mean", "saved_inv_std"})
    c.out(slot) = c.in("mean");
}

void grad(ir::Grad& g) {
  std::vector<ir::Dest> dests;
  for (const auto* slot : {"x", "scale", "bias"})
    if (g.needs(slot)) dests.emplace_back(str("d", slot), g.dx(slot));
  const bool global = g.attr<bool>("is_test") || g.attr<bool>("use_global_stats");
  const ir::Results d = g.op("batch_norm_grad",
                             {{"x", g.in("x")},
                              {"scale", g.in("scale")},
                              {"bias", g.in("bias")},
                              {"saved_mean", g.out("saved_mean")},
                              {"saved_inv_std", g.out("saved_inv_std")},
                              {"dout", g.dout("out")}},
                             {{"epsilon", g.attr<double>("epsilon")},
                              {"use_global_stats", global},
                              {"act", g.attr<std::string>("act")}},
                             dests);
  for (const auto* slot : {"x", "scale", "bias"})
    if (g.needs(slot)) g.set(slot, d[str("d", slot)]);
}

ir::Cost cost(const ir::Infer& c) {
  return {.flops = 7.0 * static_cast<double>(c.in("x").shape.numel())};
}

// The layout of x where channels can be found in it, else row-major.
Layout channel_layout(const kernel::Prepare& p) {
  const kernel::Desc& x = p.in("x");
  return Channels::of(x.shape, x.layout) ? x.layout : Layout::plain();
}

class BatchNorm final : public kernel::Kernel {
 public:
  explicit BatchNorm(kernel::Prepare& p)
      : layout_(channel_layout(p)),
        c_(*Channels::of(p.in("x").shape, layout_)),
        strips_(c_),
        momentum_(p.attr<double>("momentum")),
        epsilon_(p.attr<double>("epsilon")),
        global_(p.attr<bool>("is_test") || p.attr<bool>("use_global_stats")),
        floor_(p.attr<std::string>("act") == "relu" ? 0.0f : -INFINITY),
        x_(p.input("x", 0, layout_)),
        scale_(p.input("scale")),
        bias_(p.input("bias")),
        mean_(p.input("mean")),
        variance_(p.input("variance")),
        out_(p.output("out", 0, layout_)),
        mean_out_(p.output("mean_out")),
        variance_out_(p.output("variance_out")),
        saved_mean_(p.output("saved_mean")),
        saved_inv_std_(p.output("saved_inv_std")),
        partial_(p.scratch(static_cast<size_t>(2 * strips_.pieces() * c_.padded()) * 4)),
        coefficients_(p.scratch(static_cast<size_t>(3 * c_.padded()) * 4)) {}

  void run(const kernel::Run& r) override {
    if (!global_) measure_strips(r);
    // Channels of the padding get zero coefficients, so that out is zero there too.
    float* shift = r.out<float>(coefficients_);
    float* factor = shift + c_.padded();
    float* bias = factor + c_.padded();
    std::fill(shift, shift + 3 * c_.padded(), 0.0f);
    for (int64_t c = 0; c < c_.channels; ++c) {
      double mean = r.in<float>(mean_)[c], variance = r.in<float>(variance_)[c];
      double new_mean = mean, new_variance = variance;
      if (!global_) {
        combine(r, c, &mean, &variance);
        new_mean = momentum_ * new_mean + (1 - momentum_) * mean;
        new_variance = momentum_ * new_variance + (1 - momentum_) * variance;
      }
      const double inv_std = 1.0 / std::sqrt(variance + epsilon_);
      r.out<float>(mean_out_)[c] = static_cast<float>(new_mean);
      r.out<float>(variance_out_)[c] = static_cast<float>(new_variance);
      shift[c] = r.out<float>(saved_mean_)[c] = static_cast<float>(mean);
      r.out<float>(saved_inv_std_)[c] = static_cast<float>(inv_std);
      factor[c] = static_cast<float>(inv_std) * r.in<float>(scale_)[c];
      bias[c] = r.in<float>(bias_)[c];
    }
    const float* x = r.in<float>(x_);
    float* out = r.out<float>(out_);
    strips_.for_each([=, floor = floor_](const Strip& s, auto lanes) {
      const float *m = shift + s.channel, *f = factor + s.channel, *b = bias + s.channel;
      map_strip(s, lanes, [=](int64_t i, int l) {
        const float y = (x[i] - m[l]) * f[l] + b[l];
        out[i] = y < floor ? floor : y;
      });
    });
  }
  std::string_view implementation() const override { return "own:channels"; }

 private:
  // Mean and sum of squared distances from it, of every strip: the second walk finds it in cache.
  void measure_strips(const kernel::Run& r) {
    const float* x = r.in<float>(x_);
    float* partial = r.out<float>(partial_);
    const int64_t padded = c_.padded();
    strips_.for_each([=](const Strip& s, auto lanes) {
      float* mean = partial + 2 * s.piece * padded + s.channel;
      float* squares = mean + padded;
      sum_strip(s, lanes, mean, [=](int64_t i, int) { return x[i]; });
      for (int l = 0; l < lanes; ++l) mean[l] /= static_cast<float>(s.rows);
      float m[Strips::kMaxLanes] = {};
      std::copy(mean, mean + lanes, m);
      sum_strip(s, lanes, squares,
                [x, m](int64_t i, int l) { return (x[i] - m[l]) * (x[i] - m[l]); });
    });
  }
  // Chan, Golub, LeVeque: the variance of the whole from those of its parts.
  void combine(const kernel::Run& r, int64_t channel, double* mean, double* variance) const {
    const float* partial = r.in<float>(partial_) + channel;
    const int64_t padded = c_.padded(), pieces = strips_.pieces();
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < pieces; ++i)
      sum += static_cast<double>(strips_.rows(i)) * partial[2 * i * padded];
    const auto count = static_cast<double>(c_.per_channel());
    *mean = sum / count;
    for (int64_t i = 0; i < pieces; ++i) {
      const double away = partial[2 * i * padded] - *mean;
      squares += partial[(2 * i + 1) * padded] + static_cast<double>(strips_.rows(i)) * away * away;
    }
    *variance = squares / count;
  }

  Layout layout_;
  Channels c_;
  Strips strips_;
  double momentum_, epsilon_;
  bool global_;
  float floor_;
  kernel::Slot x_, scale_, bias_, mean_, variance_, out_, mean_out_, variance_out_, saved_mean_,
      saved_inv_std_, partial_, coefficients_;
};

// dscale and dbias are outputs of their own; where nobody wants them their sums are needed still.
void infer_grad(ir::Infer& c) {
  check_x(c);
  for (const auto* slot : {"scale", "bias", "saved_mean", "saved_inv_std"})
    check_per_channel(c, slot);
  c.check(c.in("dout") == c.in("x"), c.show("dout"), "; must be like ", c.show("x"));
  if (c.out_count("dx") > 0) c.out("dx") = c.in("x");
  for (const auto* slot : {"dscale", "dbias"})
    if (c.out_count(slot) > 0) c.out(slot) = c.in("scale");
}

ir::Cost cost_grad(const ir::Infer& c) {
  return {.flops = 11.0 * static_cast<double>(c.in("x").shape.numel())};
}

class BatchNormGrad final : public kernel::Kernel {
 public:
  explicit BatchNormGrad(kernel::Prepare& p)
      : layout_(channel_layout(p)),
        c_(*Channels::of(p.in("x").shape, layout_)),
        strips_(c_),
        global_(p.attr<bool>("use_global_stats")),
        relu_(p.attr<std::string>("act") == "relu"),
        x_(p.input("x", 0, layout_)),
        scale_(p.input("scale")),
        bias_(p.input("bias")),
        mean_(p.input("saved_mean")),
        inv_std_(p.input("saved_inv_std")),
        dout_(p.input("dout", 0, layout_)),
        dx_(p.output("dx", 0, layout_)),
        dscale_(p.output("dscale")),
        dbias_(p.output("dbias")),
        partial_(p.scratch(static_cast<size_t>(2 * strips_.pieces() * c_.padded()) * 4)),
        coefficients_(p.scratch(static_cast<size_t>(5 * c_.padded()) * 4)) {}

  void run(const kernel::Run& r) override { relu_ ? run_as<true>(r) : run_as<false>(r); }
  std::string_view implementation() const override { return "own:channels"; }

 private:
  template <bool kRelu>
  void run_as(const kernel::Run& r) {
    const int64_t padded = c_.padded();
    float* shift = r.out<float>(coefficients_);  // out = (x - shift) * factor + bias
    float *factor = shift + padded, *bias = factor + padded;
    float *from_x = bias + padded, *constant = from_x + padded;
    std::fill(shift, shift + 5 * padded, 0.0f);
    for (int64_t c = 0; c < c_.channels; ++c) {
      shift[c] = r.in<float>(mean_)[c];
      factor[c] = r.in<float>(inv_std_)[c] * r.in<float>(scale_)[c];
      bias[c] = r.in<float>(bias_)[c];
    }
    const float *x = r.in<float>(x_), *dout = r.in<float>(dout_);
    float* partial = r.out<float>(partial_);
    const bool sums = !global_ || dscale_ || dbias_;
    if (sums) {
      strips_.for_each([=](const Strip& s, auto lanes) {
        const float *m = shift + s.channel, *f = factor + s.channel, *b = bias + s.channel;
        float* to = partial + 2 * s.piece * padded + s.channel;
        const auto passed = [=](int64_t i, int l) {
          return !kRelu || (x[i] - m[l]) * f[l] + b[l] > 0 ? dout[i] : 0.0f;
        };
        sum_strip(s, lanes, to, passed);
        sum_strip(s, lanes, to + padded,
                  [=](int64_t i, int l) { return passed(i, l) * (x[i] - m[l]); });
      });
    }
    const auto count = static_cast<double>(c_.per_channel());
    for (int64_t c = 0; sums && c < c_.channels; ++c) {
      double sum = 0, with_x = 0;
      for (int64_t i = 0; i < strips_.pieces(); ++i) {
        sum += partial[2 * i * padded + c];
        with_x += partial[(2 * i + 1) * padded + c];
      }
      const double inv_std = r.in<float>(inv_std_)[c];
      if (dscale_) r.out<float>(dscale_)[c] = static_cast<float>(with_x * inv_std);
      if (dbias_) r.out<float>(dbias_)[c] = static_cast<float>(sum);
      if (global_) continue;
      constant[c] = static_cast<float>(-factor[c] * sum / count);
      from_x[c] = static_cast<float>(-factor[c] * inv_std * inv_std * with_x / count);
    }
    if (!dx_) return;
    float* dx = r.out<float>(dx_);
    strips_.for_each([=](const Strip& s, auto lanes) {
      const float *m = shift + s.channel, *f = factor + s.channel, *b = bias + s.channel;
      const float *k = from_x + s.channel, *c = constant + s.channel;
      map_strip(s, lanes, [=](int64_t i, int l) {
        const float away = x[i] - m[l];
        const float g = !kRelu || away * f[l] + b[l] > 0 ? dout[i] : 0.0f;
        dx[i] = g * f[l] + (away * k[l] + c[l]);
      });
    });
  }

  Layout layout_;
  Channels c_;
  Strips strips_;
  bool global_, relu_;
  kernel::Slot x_, scale_, bias_, mean_, inv_std_, dout_, dx_, dscale_, dbias_, partial_,
      coefficients_;
};

FLEETX_OP(batch_norm)
    .input("x")
    .input("scale")
    .input("bias")
    .input("mean")
    .input("variance")
    .output("out")
    .output("mean_out")
    .output("variance_out")
    .output("saved_mean")
    .output("saved_inv_std")
    .attr("momentum", 0.9)
    .attr("epsilon", 1e-5)
    .attr("is_test", false)
    .attr("use_global_stats", false)
    .attr("act", "")
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel<BatchNorm>()
    .in_place("out", "x");

FLEETX_OP(batch_norm_grad)
    .input("x")
    .input("scale")
    .input("bias")
    .input("saved_mean")
    .input("saved_inv_std")
    .input("dout")
    .output("dx", ir::Arity::kOptional)
    .output("dscale", ir::Arity::kOptional)
    .output("dbias", ir::Arity::kOptional)
    .attr("epsilon", 1e-5)
    .attr("use_global_stats", false)
    .attr("act", "")
    .infer(infer_grad)
    .cost(cost_grad)
    .kernel<BatchNormGrad>()
    .in_place("dx", "dout");

}  // namespace
}  // namespace fleetx
