// fc: a fully connected layer. x is seen as a matrix [M, K], its first num_flatten_dims dimensions
// being the rows; w [K, N], bias [N] -> out of shape x.shape[:num_flatten_dims] + [N].
//   z = x * w + bias, out = act(z); act: "", relu, gelu (by erf), tanh, sigmoid
// With dz = dout * act'(z):  dx = dz * w^T, dw = x^T * dz, dbias = sum over rows of dz.
// act' of relu, tanh and sigmoid comes from out; gelu's needs z, which is computed once more.
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/channels.h"
#include "fleetx/ops/product.h"

namespace fleetx {
namespace {

struct Sizes {
  int64_t m, k, n;
};

template <class Args>
Sizes sizes(const Args& args) {
  const Shape& x = args.in("x").shape;
  const int flat = args.template attr<int>("num_flatten_dims");
  return {x.numel(0, flat), x.numel(flat, x.rank()), args.in("w").shape[1]};
}

// Checks everything but dout; gives the shape of out.
Shape check(const ir::Infer& c) {
  const Shape &x = c.in("x").shape, &w = c.in("w").shape;
  c.check(c.in("x").dtype == DType::kF32 && x.rank() >= 2, c.show("x"),
          "; expected f32 of rank 2 or more");
  c.check(c.in("w").dtype == DType::kF32 && w.rank() == 2, c.show("w"), "; expected f32 [K,N]");
  const int flat = c.attr<int>("num_flatten_dims");
  c.check(flat >= 1 && flat < x.rank(), "num_flatten_dims is ", flat, ", ", c.show("x"),
          "; must be at least 1 and less than the rank of x");
  const Sizes s = sizes(c);
  c.check(s.k == w[0], c.show("x"), ", ", c.show("w"), ", num_flatten_dims ", flat,
          "; x has rows of ", s.k, ", w expects ", w[0]);
  if (c.has("bias"))
    c.check(c.in("bias").dtype == DType::kF32 && c.in("bias").shape == Shape{s.n}, c.show("bias"),
            "; expected f32[", s.n, "]");
  const auto act = c.attr<std::string>("act");
  c.check(act.empty() || act == "relu" || act == "gelu" || act == "tanh" || act == "sigmoid",
          "act is '", act, "'; known: '', relu, gelu, tanh, sigmoid");
  Shape out(std::vector<int64_t>(x.begin(), x.begin() + flat));
  out.push_back(s.n);
  return out;
}

void infer(ir::Infer& c) { c.out("out") = {DType::kF32, check(c)}; }

double product_flops(const ir::Infer& c) {
  const Sizes s = sizes(c);
  return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.k) * static_cast<double>(s.n);
}

ir::Cost cost(const ir::Infer& c) { return {.flops = product_flops(c)}; }

void grad(ir::Grad& g) {
  std::vector<ir::Dest> dests;
  for (const auto* slot : {"x", "w", "bias"})
    if (g.needs(slot)) dests.emplace_back(str("d", slot), g.dx(slot));
  const auto act = g.attr<std::string>("act");
  const bool from_out = !act.empty() && act != "gelu";
  const ir::Results d = g.op("fc_grad",
                             {{"x", g.in("x")},
                              {"w", g.in("w")},
                              {"bias", act == "gelu" ? g.in("bias") : ir::Var()},
                              {"out", from_out ? g.out("out") : ir::Var()},
                              {"dout", g.dout("out")}},
                             g.attrs(), dests);
  for (const auto* slot : {"x", "w", "bias"})
    if (g.needs(slot)) g.set(slot, d[str("d", slot)]);
}

class Fc final : public kernel::Kernel {
 public:
  explicit Fc(kernel::Prepare& p) {
    const Sizes s = sizes(p);
    product_ = Product(p, matrix(s.m, s.k), matrix(s.k, s.n), matrix(s.m, s.n),
                       {.bias = p.has("bias"), .act = p.attr<std::string>("act")});
    product_.bind(p.input("x"), p.input("w"), p.output("out"), p.input("bias"));
  }
  void run(const kernel::Run& r) override { product_.run(r); }
  std::string_view implementation() const override { return product_.implementation(); }

 private:
  Product product_;
};

void infer_grad(ir::Infer& c) {
  const ir::TensorType out{DType::kF32, check(c)};
  c.check(c.in("dout") == out, c.show("dout"), "; expected ", out);
  const auto act = c.attr<std::string>("act");
  if (!act.empty() && act != "gelu")
    c.check(c.has("out") && c.in("out") == out, c.show("out"), "; with act '", act,
            "' it must be given, like dout");
  if (c.out_count("dx") > 0) c.out("dx") = c.in("x");
  if (c.out_count("dw") > 0) c.out("dw") = c.in("w");
  if (c.out_count("dbias") > 0) c.out("dbias") = {DType::kF32, {sizes(c).n}};
}

ir::Cost cost_grad(const ir::Infer& c) {
  const bool again = c.attr<std::string>("act") == "gelu";
  const auto products =
      static_cast<double>(c.out_count("dx") + c.out_count("dw") + (again ? 1 : 0));
  return {.flops = products * product_flops(c)};
}

class FcGrad final : public kernel::Kernel {
 public:
  explicit FcGrad(kernel::Prepare& p)
      : s_(sizes(p)),
        act_(p.attr<std::string>("act")),
        x_(p.input("x")),
        w_(p.input("w")),
        out_(p.input("out")),
        dout_(p.input("dout")),
        dz_(act_.empty() ? dout_ : p.scratch(static_cast<size_t>(s_.m * s_.n) * sizeof(float))),
        dbias_(p.output("dbias")) {
    const auto dz = matrix(s_.m, s_.n);
    if (act_ == "gelu") prepare_gelu(p);
    if (p.has_out("dx")) {
      dx_product_ = Product(p, dz, matrix(s_.n, s_.k, true), matrix(s_.m, s_.k));
      dx_product_.bind(dz_, w_, p.output("dx"));
    }
    if (p.has_out("dw")) {
      dw_product_ = Product(p, matrix(s_.k, s_.m, true), dz, matrix(s_.k, s_.n));
      dw_product_.bind(x_, dz_, p.output("dw"));
    }
    if (dbias_) {
      const auto floats = Strips(columns_).pieces() * s_.n;
      partial_ = p.scratch(static_cast<size_t>(floats) * sizeof(float));
    }
  }

  void run(const kernel::Run& r) override {
    if (z_product_) {
      z_product_.run(r);
      gelu_grad_.run(r);
    } else if (act_ == "relu") {
      from_out(r, [](float out, float dout) { return out > 0 ? dout : 0.0f; });
    } else if (act_ == "tanh") {
      from_out(r, [](float out, float dout) { return dout * (1.0f - out * out); });
    } else if (act_ == "sigmoid") {
      from_out(r, [](float out, float dout) { return dout * out * (1.0f - out); });
    }
    if (dx_product_) dx_product_.run(r);
    if (dw_product_) dw_product_.run(r);
    if (dbias_)
      channel_sums(columns_, r.in<float>(dz_), r.out<float>(partial_), r.out<float>(dbias_));
  }
  std::string_view implementation() const override {
    return dw_product_ ? dw_product_.implementation() : dx_product_.implementation();
  }

 private:
  void prepare_gelu(kernel::Prepare& p) {
    const auto md = matrix(s_.m, s_.n);
    const kernel::Slot z = p.scratch(static_cast<size_t>(s_.m * s_.n) * sizeof(float));
    z_product_ = Product(p, matrix(s_.m, s_.k), matrix(s_.k, s_.n), md, {.bias = p.has("bias")});
    z_product_.bind(x_, w_, z, p.input("bias"));
    const auto gelu = dnnl::algorithm::eltwise_gelu_erf;
    const dnnl::eltwise_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, gelu, md, 0.0f, 0.0f}, onednn::engine());
    gelu_grad_ = onednn::Primitive(
        p, dnnl::eltwise_backward::primitive_desc({gelu, md, md, 0.0f, 0.0f}, onednn::attributes(),
                                                  onednn::engine(), forward));
    gelu_grad_.arg(DNNL_ARG_SRC, z, md)
        .arg(DNNL_ARG_DIFF_DST, dout_, md)
        .arg(DNNL_ARG_DIFF_SRC, dz_, md);
  }

  template <class Fn>
  void from_out(const kernel::Run& r, const Fn& fn) const {
    const float *out = r.in<float>(out_), *dout = r.in<float>(dout_);
    float* dz = r.out<float>(dz_);
    parallel_for(s_.m * s_.n, 1 << 15, [=](int64_t begin, int64_t end) {
      vectorized([=] {
        for (int64_t i = begin; i < end; ++i) dz[i] = fn(out[i], dout[i]);
      });
    });
  }

  Sizes s_;
  Channels columns_ = *Channels::of({s_.m, s_.n}, Layout::plain());
  std::string act_;
  kernel::Slot x_, w_, out_, dout_, dz_, dbias_, partial_;
  Product z_product_, dx_product_, dw_product_;
  onednn::Primitive gelu_grad_;
};

FLEETX_OP(fc)
    .input("x")
    .input("w")
    .input("bias", ir::Arity::kOptional)
    .output("out")
    .attr("num_flatten_dims", 1)
    .attr("act", "")
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel<Fc>();

FLEETX_OP(fc_grad)
    .input("x")
    .input("w")
    .input("bias", ir::Arity::kOptional)
    .input("out", ir::Arity::kOptional)
    .input("dout")
    .output("dx", ir::Arity::kOptional)
    .output("dw", ir::Arity::kOptional)
    .output("dbias", ir::Arity::kOptional)
    .attr("num_flatten_dims", 1)
    .attr("act", "")
    .infer(infer_grad)
    .cost(cost_grad)
    .kernel<FcGrad>();

}  // namespace
}  // namespace fleetx
