// fc: a fully connected layer. x is seen as a matrix [M, K], its first
// num_flatten_dims dimensions being the rows; w [K, N], bias [N] -> out of
// shape x.shape[:num_flatten_dims] + [N].
//   z = x * w + bias, out = act(z); act: "", relu, gelu (by erf), tanh, sigmoid
// With dz = dout * act'(z):  dx = dz * w^T, dw = x^T * dz, dbias = sum over
// rows of dz. act' of relu, tanh and sigmoid comes from out; gelu's needs z,
// which is computed once more. fc_grad's attribute dx_columns: dx is made for
// the first columns of x only; 0: for all.
//
// x, out and their gradients are f32, bf16 or f16; w is f32 or as x, bias, dw
// and dbias are as w.
//
// fc_group: several layers that read the same x, as q, k and v of attention do.
// w, bias and out are lists, all w of one shape; there is no act.
//   out[i] = x * w[i] + bias[i]
//   dx = addend + sum of dout[i] * w[i]^T, dw[i] = x^T * dout[i], dbias[i] as
//   above
// Products are larger so, and dx is not written for each layer and added up by
// another op. addend is what else reaches x, as from a residual connection.
#include <algorithm>
#include <optional>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/bf16_product.h"
#include "fleetx/ops/lib/element_loop.h"
#include "fleetx/ops/lib/gemm.h"
#include "fleetx/ops/lib/half.h"
#include "fleetx/ops/lib/pieces.h"
#include "fleetx/ops/lib/strided_copy.h"

namespace fleetx::ops {
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

// Checks x and w; gives the shape of out.
Shape check_product(const ir::Infer& c) {
  const Shape &x = c.in("x").shape, &w = c.in("w").shape;
  c.check(is_f32_or_half(c.in("x").dtype) && x.rank() >= 2, c.show("x"),
          "; expected f32, bf16 or f16 of rank 2 or more");
  c.check((c.in("w").dtype == f32 || c.in("w").dtype == c.in("x").dtype) && w.rank() == 2,
          c.show("w"), "; expected f32 [K,N], or in the dtype of x");
  const int flat = c.attr<int>("num_flatten_dims");
  c.check(flat >= 1 && flat < x.rank(), "num_flatten_dims is ", flat, ", ", c.show("x"),
          "; must be at least 1 and less than the rank of x");
  const Sizes s = sizes(c);
  c.check(s.k == w[0], c.show("x"), ", ", c.show("w"), ", num_flatten_dims ", flat,
          "; x has rows of ", s.k, ", w expects ", w[0]);
  for (size_t i = 1; i < c.count("w"); ++i)
    c.check(c.in("w", i) == c.in("w"), c.show("w"), ", ", c.show("w", i),
            "; all of a group have one type");
  Shape out(std::vector<int64_t>(x.begin(), x.begin() + flat));
  out.push_back(s.n);
  return out;
}

void check_biases(const ir::Infer& c) {
  const ir::TensorType type{c.in("w").dtype, {sizes(c).n}};
  for (size_t i = 0; i < c.count("bias"); ++i)
    c.check(c.in("bias", i) == type, c.show("bias", i), "; expected ", type);
}

// A list has one for each w.
void check_count(const ir::Infer& c, size_t count, const char* slot) {
  c.check(count == c.count("w"), c.count("w"), " w, but ", count, " ", slot);
}

// Checks everything but dout; gives the shape of out.
Shape check(const ir::Infer& c) {
  const Shape out = check_product(c);
  check_biases(c);
  const auto act = c.attr<std::string>("act");
  c.check(act.empty() || act == "relu" || act == "gelu" || act == "tanh" || act == "sigmoid",
          "act is '", act, "'; known: '', relu, gelu, tanh, sigmoid");
  return out;
}

void infer(ir::Infer& c) { c.out("out") = {c.in("x").dtype, check(c)}; }

void infer_group(ir::Infer& c) {
  const ir::TensorType out{c.in("x").dtype, check_product(c)};
  check_count(c, c.count("bias"), "bias");
  check_count(c, c.out_count("out"), "out");
  check_biases(c);
  for (size_t i = 0; i < c.count("w"); ++i) c.out("out", i) = out;
}

double product_flops(const ir::Infer& c) {
  const Sizes s = sizes(c);
  return 2.0 * static_cast<double>(c.count("w")) * static_cast<double>(s.m) *
         static_cast<double>(s.k) * static_cast<double>(s.n);
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

void grad_group(ir::Grad& g) {
  // Layers are differentiated together: all or none.
  const auto any_needs = [&](const char* slot) {
    for (size_t i = 0; i < g.count(slot); ++i)
      if (g.needs(slot, i)) return true;
    return false;
  };
  std::vector<ir::Dest> dests;
  if (g.needs("x")) dests.emplace_back("dx", g.dx("x"));
  for (const auto* slot : {"w", "bias"})
    if (any_needs(slot)) dests.emplace_back(str("d", slot), gradient_names(g, slot));
  std::vector<ir::Var> dout;
  for (size_t i = 0; i < g.count("w"); ++i) dout.push_back(g.dout("out", i));
  const ir::Results d = g.op("fc_group_grad", {{"x", g.in("x")}, {"w", g.ins("w")}, {"dout", dout}},
                             g.attrs(), dests);
  if (g.needs("x")) g.set("x", d["dx"]);
  for (const auto* slot : {"w", "bias"})
    if (any_needs(slot))
      for (size_t i = 0; i < g.count(slot); ++i)
        if (g.needs(slot, i)) g.set(slot, i, d.all(str("d", slot))[i]);
}

std::unique_ptr<ElementLoop> activation(DType dtype, const std::string& act,
                                        const char* suffix = "") {
  if (act.empty()) return nullptr;
  return make_element_loop(act + suffix, ir::Attrs{{"approximate", false}}, dtype);
}

// The arguments of a slot, which is a list in a group.
template <class T>
class Pointers {
 public:
  Pointers() = default;
  explicit Pointers(std::vector<kernel::Slot> slots)
      : slots_(std::move(slots)), at_(slots_.size()) {}

  std::span<T* const> of(const kernel::Run& r) {
    for (size_t i = 0; i < slots_.size(); ++i) at_[i] = static_cast<T*>(r.raw(slots_[i]));
    return at_;
  }
  bool empty() const { return slots_.empty(); }
  kernel::Slot operator[](size_t i) const { return slots_[i]; }

 private:
  std::vector<kernel::Slot> slots_;
  std::vector<T*> at_;  // of a step, here because steps allocate nothing
};

kernel::Slot room_for(kernel::Prepare& p, int64_t n, DType dtype) {
  return p.scratch(static_cast<size_t>(n) * size_of(dtype));
}
kernel::Slot scratch_for(kernel::Prepare& p, int64_t floats) {
  return floats > 0 ? room_for(p, floats, f32) : kernel::Slot();
}

// The vectors of a list that are computed in f32; those of 16 bits are
// converted.
class Vectors {
 public:
  Vectors() = default;
  Vectors(kernel::Prepare& p, std::vector<kernel::Slot> slots, DType dtype, int64_t length)
      : dtype_(dtype), length_(length), given_(slots) {
    if (is_half(dtype))
      for (kernel::Slot& slot : slots) slot = room_for(p, length, f32);
    const_.reserve(slots.size());
    wide_ = Pointers<float>(std::move(slots));
  }

  std::span<const float* const> read(const kernel::Run& r) {
    const std::span<float* const> wide = wide_.of(r);
    for (size_t i = 0; i < given_.size() && is_half(dtype_); ++i)
      widen(dtype_, r.raw(given_[i]), wide[i], length_);
    const_.assign(wide.begin(), wide.end());
    return const_;
  }
  std::span<float* const> room(const kernel::Run& r) { return wide_.of(r); }
  void write(const kernel::Run& r) {
    const std::span<float* const> wide = wide_.of(r);
    for (size_t i = 0; i < given_.size() && is_half(dtype_); ++i)
      narrow(wide[i], dtype_, r.raw(given_[i]), length_);
  }

 private:
  DType dtype_ = f32;
  int64_t length_ = 0;
  std::vector<kernel::Slot> given_;
  Pointers<float> wide_;
  std::vector<const float*> const_;
};

// In place.
void apply(const ElementLoop* act, DType dtype, void* x, int64_t n) {
  if (!act) return;
  const auto unit = static_cast<int64_t>(size_of(dtype));
  parallel_for(n, 1 << 15, [=](int64_t begin, int64_t end) {
    void* to = static_cast<char*>(x) + begin * unit;
    const void* from = to;
    act->run(&from, to, end - begin);
  });
}

// z = x * w + bias, then the activation.
class Forward {
 public:
  Forward(kernel::Prepare& p, const std::string& act, std::vector<kernel::Slot> out)
      : act_(activation(p.in("x").dtype, act)),
        x_(p.input("x")),
        w_(p.inputs("w")),
        bias_(p, p.inputs("bias"), p.in("w").dtype, sizes(p).n),
        out_(std::move(out)) {
    const Sizes s = sizes(p);
    const DType x = p.in("x").dtype;
    product_ = {.rows = s.m,
                .inner = s.k,
                .columns = s.n,
                .definition = p.skips().strassen,
                .type_a = x,
                .type_b = p.in("w").dtype,
                .type_c = x};
    Gemm::prepare();
    if (!Bf16Product::wanted(product_)) {
      scratch_ = scratch_for(p, product_.scratch(p.count("w")));
      return;
    }
    for (size_t i = 0; i < p.count("w"); ++i)
      in_bf16_.emplace_back(p, product_, x_, p.input("w", i), out_[i], p.input("bias", i));
  }

  void run(const kernel::Run& r) {
    for (Bf16Product& product : in_bf16_) product.run(r);
    if (!in_bf16_.empty()) {
      for (void* out : out_.of(r)) apply(act_.get(), bf16, out, product_.rows * product_.columns);
      return;
    }
    product_.run_each(r.raw(x_), w_.of(r), out_.of(r), bias_.read(r), act_.get(),
                      r.out<float>(scratch_));
  }
  std::string_view implementation() const {
    return in_bf16_.empty() ? product_.implementation() : in_bf16_[0].implementation();
  }

 private:
  Gemm product_{};
  std::vector<Bf16Product> in_bf16_;  // where the CPU multiplies bf16
  std::unique_ptr<ElementLoop> act_;
  kernel::Slot x_, scratch_;
  Pointers<const void> w_;
  Vectors bias_;
  Pointers<void> out_;
};

class Fc final : public kernel::Kernel {
 public:
  Fc(kernel::Prepare& p, const std::string& act) : forward_(p, act, p.outputs("out")) {}
  void run(const kernel::Run& r) override { forward_.run(r); }
  std::string_view implementation() const override { return forward_.implementation(); }

 private:
  Forward forward_;
};

void infer_grad(ir::Infer& c) {
  const ir::TensorType out{c.in("x").dtype, check(c)};
  c.check(c.in("dout") == out, c.show("dout"), "; expected ", out);
  const auto act = c.attr<std::string>("act");
  if (!act.empty() && act != "gelu")
    c.check(c.has("out") && c.in("out") == out, c.show("out"), "; with act '", act,
            "' it must be given, like dout");
  const Shape& x = c.in("x").shape;
  const auto columns = c.attr<int64_t>("dx_columns");
  c.check(columns == 0 || (x.rank() == c.attr<int>("num_flatten_dims") + 1 && columns > 0 &&
                           columns <= x.back()),
          "dx_columns is ", columns, ", ", c.show("x"),
          "; must be 0 or at most the last dimension of x, all others being rows");
  if (c.out_count("dx") > 0) {
    c.out("dx") = c.in("x");
    if (columns > 0) c.out("dx").shape[x.rank() - 1] = columns;
  }
  if (c.out_count("dw") > 0) c.out("dw") = c.in("w");
  if (c.out_count("dbias") > 0) c.out("dbias") = {c.in("w").dtype, {sizes(c).n}};
}

void infer_group_grad(ir::Infer& c) {
  const ir::TensorType out{c.in("x").dtype, check_product(c)};
  check_count(c, c.count("dout"), "dout");
  for (size_t i = 0; i < c.count("dout"); ++i)
    c.check(c.in("dout", i) == out, c.show("dout", i), "; expected ", out);
  if (c.has("addend"))
    c.check(c.in("addend") == c.in("x"), c.show("addend"), ", ", c.show("x"),
            "; they must have one type");
  if (c.out_count("dx") > 0) c.out("dx") = c.in("x");
  for (const auto* slot : {"dw", "dbias"})
    if (c.out_count(slot) > 0) check_count(c, c.out_count(slot), slot);
  for (size_t i = 0; i < c.out_count("dw"); ++i) c.out("dw", i) = c.in("w");
  for (size_t i = 0; i < c.out_count("dbias"); ++i)
    c.out("dbias", i) = {c.in("w").dtype, {sizes(c).n}};
}

ir::Cost cost_group_grad(const ir::Infer& c) {
  const int products = (c.out_count("dx") > 0 ? 1 : 0) + (c.out_count("dw") > 0 ? 1 : 0);
  return {.flops = products * product_flops(c)};
}

ir::Cost cost_grad(const ir::Infer& c) {
  const bool again = c.attr<std::string>("act") == "gelu";
  const auto columns = static_cast<double>(c.attr<int64_t>("dx_columns"));
  const double dx = columns > 0 ? columns / static_cast<double>(sizes(c).k) : 1;
  const double products = static_cast<double>(c.out_count("dx")) * dx +
                          static_cast<double>(c.out_count("dw")) + (again ? 1 : 0);
  return {.flops = products * product_flops(c)};
}

// sums[j] = sum over the rows of x[row, j]. A strip of columns is read row by
// row; sums of f32 go over few rows only.
template <class S>
void column_sums(const S* x, int64_t rows, int64_t columns, float* sums) {
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
            for (int64_t j = 0; j < width; ++j)
              part[j] += static_cast<float>(x[row * columns + first + j]);
          for (int64_t j = 0; j < width; ++j) total[j] += static_cast<double>(part[j]);
        }
        for (int64_t j = 0; j < width; ++j) sums[first + j] = static_cast<float>(total[j]);
      });
    }
  });
}

class FcGrad final : public kernel::Kernel {
 public:
  FcGrad(kernel::Prepare& p, const std::string& act, int64_t dx_columns)
      : s_(sizes(p)),
        dtype_(p.in("x").dtype),
        dx_product_{.rows = s_.m,
                    .inner = s_.n,
                    .columns = dx_columns > 0 ? dx_columns : s_.k,
                    .transpose_b = true,
                    .definition = p.skips().strassen,
                    .type_a = dtype_,
                    .type_b = p.in("w").dtype,
                    .type_c = dtype_},
        dw_product_{.rows = s_.k,
                    .inner = s_.m,
                    .columns = s_.n,
                    .transpose_a = true,
                    .definition = p.skips().strassen,
                    .type_a = dtype_,
                    .type_b = dtype_,
                    .type_c = p.in("w").dtype},
        slope_(activation(dtype_, act, "_grad")),
        x_(p.input("x")),
        dx_(p.output("dx")),
        w_(p.inputs("w")),
        dw_(p.outputs("dw")),
        dbias_(p, p.outputs("dbias"), p.in("w").dtype, s_.n) {
    Gemm::prepare();
    // One after the other, the products use the same memory.
    const bool wide = !Bf16Product::wanted(dx_product_);
    scratch_ =
        scratch_for(p, !wide ? 0
                             : std::max(dx_ ? dx_product_.scratch() : 0,
                                        dw_.empty() ? 0 : dw_product_.scratch(p.count("w"))));
    if (dx_ && turning_pays(dx_product_)) {
      const int64_t columns = dx_product_.columns;
      turn_ = StridedCopy(sizeof(float), {{s_.n, 1, columns}, {columns, s_.n, 1}});
      std::vector<kernel::Slot> turned;
      for (size_t i = 0; i < p.count("w"); ++i) turned.push_back(room_for(p, columns * s_.n, f32));
      turned_ = Pointers<void>(turned);
      turned_w_ = Pointers<const void>(std::move(turned));
      dx_product_.transpose_b = false;
    }
    if (p.op().type() == "fc_group_grad") addend_ = p.input("addend");
    dx_product_.accumulate = static_cast<bool>(addend_);
    if (slope_)
      prepare_slope(p, act);
    else
      dz_ = Pointers<const void>(p.inputs("dout"));
    prepare_bf16(p);
  }

  void run(const kernel::Run& r) override {
    if (forward_) forward_->run(r);
    if (slope_) activation_backward(r);
    const std::span<const void* const> dz = dz_.of(r);
    if (sums_ && addend_) widen_all(dtype_, r.raw(addend_), r.out<float>(sums_), s_.m * s_.k);
    for (Bf16Product& product : in_bf16_) product.run(r);
    if (sums_) narrow_all(r.in<float>(sums_), dtype_, r.raw(dx_), s_.m * s_.k);
    if (dx_ && in_bf16_.empty()) input_gradient(r, dz);
    if (!dw_.empty() && in_bf16_.empty())
      dw_product_.run_each(r.raw(x_), dz, dw_.of(r), {}, nullptr, r.out<float>(scratch_));
    const std::span<float* const> dbias = dbias_.room(r);
    with_storage(dtype_, [&](auto zero) {
      for (size_t i = 0; i < dbias.size(); ++i)
        column_sums(static_cast<const decltype(zero)*>(dz[i]), s_.m, s_.n, dbias[i]);
    });
    dbias_.write(r);
  }
  std::string_view implementation() const override {
    if (!in_bf16_.empty()) return in_bf16_[0].implementation();
    return (dw_.empty() ? dx_product_ : dw_product_).implementation();
  }

 private:
  void prepare_slope(kernel::Prepare& p, const std::string& act) {
    dout_ = p.input("dout");
    slopes_ = room_for(p, s_.m * s_.n, dtype_);
    dz_ = Pointers<const void>({slopes_});
    if (act == "gelu") {
      out_ = room_for(p, s_.m * s_.n, dtype_);
      forward_.emplace(p, "", std::vector{out_});
    } else {
      out_ = p.input("out");
    }
  }

  // Where the CPU multiplies bf16. What meets in dx is added up in f32.
  void prepare_bf16(kernel::Prepare& p) {
    if (!Bf16Product::wanted(dx_product_)) return;
    Gemm dx = dx_product_;
    if (dx_ && (addend_ || p.count("w") > 1)) {
      sums_ = room_for(p, s_.m * s_.k, f32);
      dx.type_c = f32;
    }
    for (size_t i = 0; i < p.count("w"); ++i, dx.accumulate = true) {
      if (dx_) in_bf16_.emplace_back(p, dx, dz_[i], p.input("w", i), sums_ ? sums_ : dx_);
      if (!dw_.empty()) in_bf16_.emplace_back(p, dw_product_, x_, dz_[i], dw_[i]);
    }
  }

  void activation_backward(const kernel::Run& r) const {
    const auto unit = static_cast<int64_t>(size_of(dtype_));
    parallel_for(s_.m * s_.n, 1 << 15, [&](int64_t begin, int64_t end) {
      const void* in[] = {r.in<char>(out_) + begin * unit, r.in<char>(dout_) + begin * unit};
      slope_->run(in, r.out<char>(slopes_) + begin * unit, end - begin);
    });
  }

  void input_gradient(const kernel::Run& r, std::span<const void* const> dz) {
    std::span<const void* const> w = w_.of(r);
    if (!turned_.empty()) {
      const std::span<void* const> turned = turned_.of(r);
      for (size_t i = 0; i < w.size(); ++i) turn_.run(w[i], turned[i]);
      w = turned_w_.of(r);
    }
    char* dx = r.out<char>(dx_);
    const char* addend = r.in<char>(addend_);
    if (addend && addend != dx)
      parallel_for(
          s_.m * s_.k * static_cast<int64_t>(size_of(dtype_)), 1 << 17,
          [=](int64_t begin, int64_t end) { std::copy(addend + begin, addend + end, dx + begin); });
    dx_product_.run_sum(dz, w, dx, r.out<float>(scratch_));
  }

  // With AVX2 sgemm is 7 % slower where b is transposed, which is more than to
  // transpose it first if there are many rows; not on AMD's (Zen 3), where it is
  // as fast.
  static bool turning_pays(const Gemm& product) {
    return vector_isa() == cpu::Isa::kAvx2 && product.implementation() == "sgemm" &&
           product.rows >= 256 && __builtin_cpu_is("amd") == 0;
  }

  Sizes s_;
  DType dtype_;  // of x
  Gemm dx_product_, dw_product_;
  StridedCopy turn_;                    // w^T
  std::unique_ptr<ElementLoop> slope_;  // reads out, or z for gelu
  std::optional<Forward> forward_;      // makes z
  std::vector<Bf16Product> in_bf16_;
  kernel::Slot x_, out_, dout_, slopes_, addend_, dx_, scratch_, sums_;
  Pointers<const void> w_, turned_w_, dz_;
  Pointers<void> turned_, dw_;
  Vectors dbias_;
};

std::unique_ptr<kernel::Kernel> make_fc(kernel::Prepare& p) {
  return std::make_unique<Fc>(p, p.attr<std::string>("act"));
}
std::unique_ptr<kernel::Kernel> make_fc_grad(kernel::Prepare& p) {
  return std::make_unique<FcGrad>(p, p.attr<std::string>("act"), p.attr<int64_t>("dx_columns"));
}
std::unique_ptr<kernel::Kernel> make_group(kernel::Prepare& p) {
  return std::make_unique<Fc>(p, "");
}
std::unique_ptr<kernel::Kernel> make_group_grad(kernel::Prepare& p) {
  return std::make_unique<FcGrad>(p, "", 0);
}

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
    .kernel(make_fc);

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
    .attr("dx_columns", 0)
    .infer(infer_grad)
    .cost(cost_grad)
    .kernel(make_fc_grad);

FLEETX_OP(fc_group)
    .input("x")
    .input("w", ir::Arity::kMany)
    .input("bias", ir::Arity::kMany)
    .output("out", ir::Arity::kMany)
    .attr("num_flatten_dims", 1)
    .infer(infer_group)
    .grad(grad_group)
    .cost(cost)
    .kernel(make_group);

FLEETX_OP(fc_group_grad)
    .input("x")
    .input("w", ir::Arity::kMany)
    .input("dout", ir::Arity::kMany)
    .input("addend", ir::Arity::kOptional)
    .output("dx", ir::Arity::kOptional)
    .output("dw", ir::Arity::kMany)
    .output("dbias", ir::Arity::kMany)
    .attr("num_flatten_dims", 1)
    .infer(infer_group_grad)
    .cost(cost_group_grad)
    .kernel(make_group_grad)
    .in_place("dx", "addend");

}  // namespace
}  // namespace fleetx::ops
