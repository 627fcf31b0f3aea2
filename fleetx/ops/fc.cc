// fc: a fully connected layer. x is seen as a matrix [M, K], its first num_flatten_dims dimensions
// being the rows; w [K, N], bias [N] -> out of shape x.shape[:num_flatten_dims] + [N].
//   z = x * w + bias, out = act(z); act: "", relu, gelu (by erf), tanh, sigmoid
// With dz = dout * act'(z):  dx = dz * w^T, dw = x^T * dz, dbias = sum over rows of dz.
// act' of relu, tanh and sigmoid comes from out; gelu's needs z, which is computed once more.
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/element_loop.h"
#include "fleetx/ops/gemm.h"
#include "fleetx/ops/strided_copy.h"

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

std::unique_ptr<ElementLoop> activation(const std::string& act, const char* suffix = "") {
  if (act.empty()) return nullptr;
  return make_element_loop(act + suffix, ir::Attrs{{"approximate", false}}, f32);
}

// z = x * w + bias, then the activation.
class Forward {
 public:
  Forward() = default;
  Forward(const kernel::Prepare& p, const std::string& act) : act_(activation(act)) {
    const Sizes s = sizes(p);
    product_ = {.rows = s.m, .inner = s.k, .columns = s.n, .definition = p.without().strassen};
    Gemm::prepare();
  }

  void run(const float* x, const float* w, const float* bias, float* out) const {
    product_.run(x, w, out, bias, act_.get());
  }
  std::string_view implementation() const { return product_.implementation(); }

 private:
  Gemm product_{};
  std::unique_ptr<ElementLoop> act_;
};

class Fc final : public kernel::Kernel {
 public:
  explicit Fc(kernel::Prepare& p)
      : forward_(p, p.attr<std::string>("act")),
        x_(p.input("x")),
        w_(p.input("w")),
        bias_(p.input("bias")),
        out_(p.output("out")) {}
  void run(const kernel::Run& r) override {
    forward_.run(r.in<float>(x_), r.in<float>(w_), r.in<float>(bias_), r.out<float>(out_));
  }
  std::string_view implementation() const override { return forward_.implementation(); }

 private:
  Forward forward_;
  kernel::Slot x_, w_, bias_, out_;
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

// sums[j] = sum over the rows of x[row, j]. A strip of columns is read row by row; sums of f32 go
// over few rows only.
void column_sums(const float* x, int64_t rows, int64_t columns, float* sums) {
  constexpr int64_t kStrip = 256, kRows = 256;
  const int64_t strips = (columns + kStrip - 1) / kStrip;
  parallel_for(strips, (1 << 15) / (rows * kStrip) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip) {
      const int64_t first = strip * kStrip, width = std::min(kStrip, columns - first);
      vectorized([=] {
        double total[kStrip] = {};
        for (int64_t top = 0; top < rows; top += kRows) {
          float part[kStrip] = {};
          for (int64_t row = top; row < std::min(rows, top + kRows); ++row)
            for (int64_t j = 0; j < width; ++j) part[j] += x[row * columns + first + j];
          for (int64_t j = 0; j < width; ++j) total[j] += static_cast<double>(part[j]);
        }
        for (int64_t j = 0; j < width; ++j) sums[first + j] = static_cast<float>(total[j]);
      });
    }
  });
}

class FcGrad final : public kernel::Kernel {
 public:
  explicit FcGrad(kernel::Prepare& p)
      : s_(sizes(p)),
        dx_product_{.rows = s_.m,
                    .inner = s_.n,
                    .columns = s_.k,
                    .transpose_b = true,
                    .definition = p.without().strassen},
        dw_product_{.rows = s_.k,
                    .inner = s_.m,
                    .columns = s_.n,
                    .transpose_a = true,
                    .definition = p.without().strassen},
        slope_(activation(p.attr<std::string>("act"), "_grad")),
        x_(p.input("x")),
        w_(p.input("w")),
        bias_(p.input("bias")),
        out_(p.input("out")),
        dout_(p.input("dout")),
        dx_(p.output("dx")),
        dw_(p.output("dw")),
        dbias_(p.output("dbias")) {
    Gemm::prepare();
    const auto floats = [&](int64_t n) {
      return p.scratch(static_cast<size_t>(n) * sizeof(float));
    };
    dz_ = slope_ ? floats(s_.m * s_.n) : dout_;
    if (dx_ && turning_pays(dx_product_)) {
      turn_ = StridedCopy(sizeof(float), {{s_.n, 1, s_.k}, {s_.k, s_.n, 1}});
      turned_ = floats(s_.k * s_.n);
      dx_product_.transpose_b = false;
    }
    if (p.attr<std::string>("act") == "gelu") {
      forward_ = Forward(p, "");
      out_ = z_ = floats(s_.m * s_.n);
    }
  }

  void run(const kernel::Run& r) override {
    const float *x = r.in<float>(x_), *w = r.in<float>(w_), *dz = r.in<float>(dz_);
    if (z_) forward_.run(x, w, r.in<float>(bias_), r.out<float>(z_));
    if (slope_) activation_backward(r);
    if (turned_) turn_.run(w, r.out<float>(turned_));
    if (dx_) dx_product_.run(dz, turned_ ? r.in<float>(turned_) : w, r.out<float>(dx_));
    if (dw_) dw_product_.run(x, dz, r.out<float>(dw_));
    if (dbias_) column_sums(dz, s_.m, s_.n, r.out<float>(dbias_));
  }
  std::string_view implementation() const override {
    return (dw_ ? dw_product_ : dx_product_).implementation();
  }

 private:
  void activation_backward(const kernel::Run& r) const {
    parallel_for(s_.m * s_.n, 1 << 15, [&](int64_t begin, int64_t end) {
      const void* in[] = {r.in<float>(out_) + begin, r.in<float>(dout_) + begin};
      slope_->run(in, r.out<float>(dz_) + begin, end - begin);
    });
  }

  // With AVX2 sgemm is 7 % slower where b is transposed, which is more than to transpose it first
  // if there are many rows.
  static bool turning_pays(const Gemm& product) {
    return vector_isa() == cpu::Isa::kAvx2 && product.implementation() == "sgemm" &&
           product.rows >= 256;
  }

  Sizes s_;
  Gemm dx_product_, dw_product_;
  StridedCopy turn_;                    // w^T
  std::unique_ptr<ElementLoop> slope_;  // reads out, or z for gelu
  Forward forward_;
  kernel::Slot x_, w_, bias_, out_, dout_, dx_, dw_, dbias_, dz_, z_, turned_;
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
