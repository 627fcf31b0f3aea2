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
// x, out and their gradients are f32, bf16 or f16; all that is per channel is f32.
// With a `group` the batch is that of all its ranks: sums over a channel, and M, are theirs
// together; dscale and dbias stay those of this rank, to be averaged like all gradients.
#include <optional>

#include "fleetx/kernel/group.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/normalize.h"

namespace fleetx::ops {
namespace {

void check_per_channel(const ir::Infer& c, std::string_view slot) {
  c.check(c.in(slot).dtype == DType::kF32 && c.in(slot).shape == Shape{c.in("x").shape[1]},
          c.show(slot), "; expected f32[", c.in("x").shape[1], "], one value per channel of x");
}

void check_x(const ir::Infer& c) {
  const ir::TensorType& x = c.in("x");
  c.check(is_f32_or_half(x.dtype) && (x.shape.rank() == 2 || x.shape.rank() == 4), c.show("x"),
          "; expected f32, bf16 or f16 of rank 2 [N,C] or 4 [N,C,H,W]");
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
                              {"group", g.attr<std::string>("group")},
                              {"act", g.attr<std::string>("act")}},
                             dests);
  for (const auto* slot : {"x", "scale", "bias"})
    if (g.needs(slot)) g.set(slot, d[str("d", slot)]);
}

// What GroupSums gathers.
ir::Communication exchanged(const ir::Infer& c, bool global) {
  const auto group = c.attr<std::string>("group");
  if (group.empty() || global) return {};
  const auto channels = static_cast<double>(c.in("scale").shape.numel());
  return {ir::CommKind::kAllGather, group, (2 * channels + 1) * sizeof(double)};
}

ir::Cost cost(const ir::Infer& c) {
  const bool global = c.attr<bool>("is_test") || c.attr<bool>("use_global_stats");
  return {.flops = 7.0 * static_cast<double>(c.in("x").shape.numel()),
          .communication = exchanged(c, global)};
}

// Two numbers per channel of every rank of a group, and over how many values they were taken.
class GroupSums {
 public:
  GroupSums(kernel::Prepare& p, const Channels& c, bool wanted) : channels_(c.channels) {
    const auto name = p.attr<std::string>("group");
    if (!wanted || name.empty()) return;
    group_ = p.group(name);
    own_ = p.scratch(static_cast<size_t>(size()) * 8);
    all_ = p.scratch(static_cast<size_t>(size() * group_->size()) * 8);
  }
  explicit operator bool() const { return group_.has_value(); }
  void bind(const comm::Groups& groups) {
    if (group_) group_->bind(groups);
  }

  // measure(channel, first, second) writes the numbers of this rank.
  template <class Measure>
  void exchange(const kernel::Run& r, int64_t count, const Measure& measure) const {
    auto* own = r.out<double>(own_);
    for (int64_t c = 0; c < channels_; ++c) measure(c, own + 2 * c, own + 2 * c + 1);
    own[2 * channels_] = static_cast<double>(count);
    (*group_)->all_gather(own, r.out<double>(all_), size(), f64);
  }
  // body(first, second, count) for every rank, in order.
  template <class Body>
  void for_each(const kernel::Run& r, int64_t channel, const Body& body) const {
    for (int rank = 0; rank < group_->size(); ++rank) {
      const double* of = r.in<double>(all_) + rank * size();
      body(of[2 * channel], of[2 * channel + 1], of[2 * channels_]);
    }
  }

 private:
  int64_t size() const { return 2 * channels_ + 1; }

  int64_t channels_;
  std::optional<kernel::Group> group_;
  kernel::Slot own_, all_;
};

// Mean of every strip and sum of squared distances from it. Summed as distances from the first row:
// one walk, and nothing cancels.
template <class S>
auto measure_strips(const S* x, float* partial, int64_t padded) {
  return [=](const Strip& s, auto lanes) {
    float* sum = partial + 2 * s.piece * padded + s.channel;
    sum_two(s, lanes, sum, sum + padded, [=, first = x + s.offset]<class T>(T, int64_t i, int l) {
      const T away = load<T>(x + i) - load<T>(first + l);
      return Two<T>{away, away * away};
    });
    for (int l = 0; l < lanes; ++l) {
      const float mean = sum[l] / static_cast<float>(s.rows);
      sum[padded + l] -= mean * sum[l];
      sum[l] = x[s.offset + l] + mean;
    }
  };
}

class BatchNorm final : public kernel::Kernel {
 public:
  explicit BatchNorm(kernel::Prepare& p)
      : layout_(channel_layout(p.in("x").shape, p.in("x").layout)),
        c_(*Channels::of(p.in("x").shape, layout_)),
        strips_(c_),
        dtype_(p.in("x").dtype),
        momentum_(p.attr<double>("momentum")),
        epsilon_(p.attr<double>("epsilon")),
        global_(p.attr<bool>("is_test") || p.attr<bool>("use_global_stats")),
        floor_(floor_of(p.attr<std::string>("act"))),
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
        coefficients_(p.scratch(static_cast<size_t>(3 * c_.padded()) * 4)),
        others_(p, c_, !global_) {}

  void bind(const comm::Groups& groups) override { others_.bind(groups); }
  void run(const kernel::Run& r) override {
    with_storage(dtype_, [&](auto zero) { run_as<decltype(zero)>(r); });
  }
  std::string_view implementation() const override { return "own:channels"; }

 private:
  template <class S>
  void run_as(const kernel::Run& r) {
    // Channels of the padding get zero coefficients, so that out is zero there too.
    const int64_t padded = c_.padded();
    float* shift = r.out<float>(coefficients_);
    float *factor = shift + padded, *bias = factor + padded;
    std::fill(shift, shift + 3 * padded, 0.0f);
    const Normalize<S> n{r.in<S>(x_), r.out<S>(out_), shift, factor, bias, floor_};
    const auto settle = [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) settle_channel(r, c, shift, factor, bias);
    };
    const auto measure = measure_strips(n.x, r.out<float>(partial_), padded);
    const auto run_with = [&](const auto& apply) {
      if (!global_ && !others_) return strips_.sweep(measure, settle, apply);
      if (others_) {
        strips_.for_each(measure);
        others_.exchange(r, c_.per_channel(), [&](int64_t c, double* mean, double* variance) {
          combine_strips(r, c, mean, variance);
        });
      }
      settle(0, c_.channels);
      strips_.for_each(apply);
    };
    if (n.past_caches(c_))
      run_with([n](const Strip& s, auto lanes) { n.template apply<true>(s, lanes); });
    else
      run_with([n](const Strip& s, auto lanes) { n.template apply<false>(s, lanes); });
  }

  // From the measured strips, or the running statistics, to what the second walk needs.
  void settle_channel(const kernel::Run& r, int64_t c, float* shift, float* factor,
                      float* bias) const {
    double mean = r.in<float>(mean_)[c], variance = r.in<float>(variance_)[c];
    double new_mean = mean, new_variance = variance;
    if (!global_) {
      others_ ? combine_ranks(r, c, &mean, &variance) : combine_strips(r, c, &mean, &variance);
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
  // Chan, Golub, LeVeque: the variance of the whole from those of its parts.
  void combine_ranks(const kernel::Run& r, int64_t channel, double* mean, double* variance) const {
    double sum = 0, squares = 0, total = 0;
    others_.for_each(r, channel, [&](double m, double, double count) {
      sum += count * m;
      total += count;
    });
    *mean = sum / total;
    others_.for_each(r, channel, [&](double m, double v, double count) {
      squares += count * (v + (m - *mean) * (m - *mean));
    });
    *variance = squares / total;
  }
  void combine_strips(const kernel::Run& r, int64_t channel, double* mean, double* variance) const {
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
  DType dtype_;
  double momentum_, epsilon_;
  bool global_;
  float floor_;
  kernel::Slot x_, scale_, bias_, mean_, variance_, out_, mean_out_, variance_out_, saved_mean_,
      saved_inv_std_, partial_, coefficients_;
  GroupSums others_;
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
  return {.flops = 11.0 * static_cast<double>(c.in("x").shape.numel()),
          .communication = exchanged(c, c.attr<bool>("use_global_stats"))};
}

class BatchNormGrad final : public kernel::Kernel {
 public:
  explicit BatchNormGrad(kernel::Prepare& p)
      : layout_(channel_layout(p.in("x").shape, p.in("x").layout)),
        c_(*Channels::of(p.in("x").shape, layout_)),
        strips_(c_),
        dtype_(p.in("x").dtype),
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
        coefficients_(p.scratch(static_cast<size_t>(5 * c_.padded()) * 4)),
        others_(p, c_, !global_) {}

  void bind(const comm::Groups& groups) override { others_.bind(groups); }
  void run(const kernel::Run& r) override {
    with_storage(dtype_, [&](auto zero) {
      using S = decltype(zero);
      relu_ ? run_as<S, true>(r) : run_as<S, false>(r);
    });
  }
  std::string_view implementation() const override { return "own:channels"; }

 private:
  template <class S, bool kRelu>
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
    const S *x = r.in<S>(x_), *dout = r.in<S>(dout_);
    S* dx = r.out<S>(dx_);
    float* partial = r.out<float>(partial_);
    const auto measure = [=](const Strip& s, auto lanes) {
      const float *m = shift + s.channel, *f = factor + s.channel, *b = bias + s.channel;
      float* sum = partial + 2 * s.piece * padded + s.channel;
      sum_two(s, lanes, sum, sum + padded, [=]<class T>(T, int64_t i, int l) {
        const T away = load<T>(x + i) - load<T>(m + l);
        const T g = passed<kRelu>(away, load<T>(dout + i), load<T>(f + l), load<T>(b + l));
        return Two<T>{g, g * away};
      });
    };
    const auto settle = [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) settle_channel(r, c, factor, from_x, constant);
    };
    const auto apply = [=](const Strip& s, auto lanes) {
      const float *m = shift + s.channel, *f = factor + s.channel, *b = bias + s.channel;
      const float *k = from_x + s.channel, *c = constant + s.channel;
      map_vectors(s, lanes, [=]<class T>(T, int64_t i, int l) {
        const T away = load<T>(x + i) - load<T>(m + l), scale = load<T>(f + l);
        const T g = passed<kRelu>(away, load<T>(dout + i), scale, load<T>(b + l));
        store<false>(dx + i, T(g * scale + (away * load<T>(k + l) + load<T>(c + l))));
      });
    };
    if (dx_ && !global_ && !others_) return strips_.sweep(measure, settle, apply);
    if (dscale_ || dbias_ || others_) {
      strips_.for_each(measure);
      if (others_)
        others_.exchange(r, c_.per_channel(), [&](int64_t c, double* sum, double* with_x) {
          sum_strips(r, c, sum, with_x);
        });
      settle(0, c_.channels);
    }
    if (dx_) strips_.for_each(apply);
  }

  // The gradient where relu let the value pass.
  template <bool kRelu, class T>
  static T passed(const T& away, const T& dout, const T& factor, const T& bias) {
    if constexpr (!kRelu) return dout;
    return away * factor + bias > 0 ? dout : T{};
  }

  void sum_strips(const kernel::Run& r, int64_t c, double* sum, double* with_x) const {
    const int64_t padded = c_.padded();
    const float* partial = r.in<float>(partial_) + c;
    *sum = *with_x = 0;
    for (int64_t i = 0; i < strips_.pieces(); ++i) {
      *sum += partial[2 * i * padded];
      *with_x += partial[(2 * i + 1) * padded];
    }
  }

  void settle_channel(const kernel::Run& r, int64_t c, const float* factor, float* from_x,
                      float* constant) const {
    double sum = 0, with_x = 0;
    sum_strips(r, c, &sum, &with_x);
    const double inv_std = r.in<float>(inv_std_)[c];
    auto count = static_cast<double>(c_.per_channel());
    if (dscale_) r.out<float>(dscale_)[c] = static_cast<float>(with_x * inv_std);
    if (dbias_) r.out<float>(dbias_)[c] = static_cast<float>(sum);
    if (global_) return;
    if (others_) {
      sum = with_x = count = 0;
      others_.for_each(r, c, [&](double more, double more_with_x, double more_values) {
        sum += more;
        with_x += more_with_x;
        count += more_values;
      });
    }
    constant[c] = static_cast<float>(-factor[c] * sum / count);
    from_x[c] = static_cast<float>(-factor[c] * inv_std * inv_std * with_x / count);
  }

  Layout layout_;
  Channels c_;
  Strips strips_;
  DType dtype_;
  bool global_, relu_;
  kernel::Slot x_, scale_, bias_, mean_, inv_std_, dout_, dx_, dscale_, dbias_, partial_,
      coefficients_;
  GroupSums others_;
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
    .attr("group", "")
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel<BatchNorm>()
    .collective()
    .uniform("mean_out")
    .uniform("variance_out")
    .uniform("saved_mean")
    .uniform("saved_inv_std")
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
    .attr("group", "")
    .infer(infer_grad)
    .cost(cost_grad)
    .kernel<BatchNormGrad>()
    .collective()
    .in_place("dx", "dout");

}  // namespace
}  // namespace fleetx::ops
