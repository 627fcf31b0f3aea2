// gru: a recurrent layer over a ragged batch. Sequence b is the rows starts[b] .. starts[b] +
// lengths[b] - 1 of x [N, 3H], what its inputs give for the gates u, r and the candidate c. Row by
// row, from the last one with `reverse`, h' being the state of the row before:
//   u = gate(xu + bu + h' * Wu), r = gate(xr + br + h' * Wr)
//   c = activation(xc + bc + (r * h') * Wc)
//   h = (1 - u) * h' + u * c;  with `origin`:  h = u * h' + (1 - u) * c
// weight [H, 3H] holds two matrices one after the other: [H, 2H] of u and r, then [H, H] of c.
// Before the first row h' is h0 [B, H], or zero. hidden is [N, H]; rows of no sequence are zero.
// `gates` [N, 3H] keeps u, r, c for backward, which goes through the rows the other way:
//   du = dh * (c - h'), dc = dh * u, dh' = dh * (1 - u)    (with origin u is 1 - u)
//   dzc = dc * activation', s = dzc * Wc^T, dr = s * h', dh' += s * r
//   dh' += (du * gate', dr * gate') * (Wu, Wr)^T; dx = dz
//   dweight = sums of h'^T dz and (r * h')^T dzc: two products over all rows.
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/gemm.h"
#include "fleetx/ops/lib/recurrence.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const Shape &x = c.in("x").shape, &weight = c.in("weight").shape;
  for (const char* slot : {"x", "weight", "bias", "h0"})
    c.check(!c.has(slot) || c.in(slot).dtype == f32, c.show(slot), "; expected f32");
  c.check(weight.rank() == 2 && weight[1] == 3 * weight[0], c.show("weight"), "; must be [H, 3 H]");
  const int64_t h = weight[0];
  c.check(x.rank() == 2 && x[1] == 3 * h, c.show("x"), "; must be [rows, ", 3 * h, "] for ",
          c.show("weight"));
  check_sequences(c);
  c.check(!c.has("bias") || c.in("bias").shape == Shape{3 * h}, c.show("bias"), "; must be [",
          3 * h, "]");
  const Shape state = {c.in("starts").shape[0], h};
  c.check(!c.has("h0") || c.by_example() || c.in("h0").shape == state, c.show("h0"), "; must be ",
          state);
  check_activation(c, "gate_activation");
  check_activation(c, "activation");
  c.out("hidden") = {f32, {x[0], h}};
  c.out("gates") = {f32, x};
}

void grad(ir::Grad& g) {
  constexpr const char* kInputs[] = {"x", "weight", "bias", "h0"};
  std::vector<ir::Dest> dests;
  for (const char* slot : kInputs)
    if (g.has(slot) && g.needs(slot)) dests.emplace_back(str("d", slot), g.dx(slot));
  const ir::Results d = g.op("gru_grad",
                             {{"weight", g.in("weight")},
                              {"h0", g.in("h0")},
                              {"starts", g.in("starts")},
                              {"lengths", g.in("lengths")},
                              {"hidden", g.out("hidden")},
                              {"gates", g.out("gates")},
                              {"dhidden", g.dout("hidden")}},
                             g.attrs(), dests);
  for (const char* slot : kInputs)
    if (g.has(slot) && g.needs(slot)) g.set(slot, d[str("d", slot)]);
}

void infer_grad(ir::Infer& c) {
  c.check(c.in("dhidden") == c.in("hidden"), c.show("dhidden"), ", but ", c.show("hidden"));
  if (c.out_count("dx") > 0) c.out("dx") = c.in("gates");
  if (c.out_count("dweight") > 0) c.out("dweight") = c.in("weight");
  if (c.out_count("dbias") > 0) c.out("dbias") = {f32, {c.in("gates").shape[1]}};
  if (c.out_count("dh0") > 0) c.out("dh0") = c.in("h0");
}

ir::Cost cost(const ir::Infer& c) {
  const auto h = static_cast<double>(c.in("weight").shape[0]);
  return {.flops = static_cast<double>(c.in("x").shape[0]) * h * (6.0 * h + 30.0)};
}

ir::Cost grad_cost(const ir::Infer& c) {
  const auto h = static_cast<double>(c.in("weight").shape[0]);
  return {.flops = static_cast<double>(c.in("hidden").shape[0]) * h * (12.0 * h + 40.0)};
}

int64_t grain_of(int64_t h) { return (1 << 11) / h + 1; }

class Gru final : public kernel::Kernel {
 public:
  explicit Gru(kernel::Prepare& p)
      : sequences_(p, p.in("x").shape[0], p.attr<bool>("reverse")),
        h_(p.in("weight").shape[0]),
        gate_(activation_of(p, "gate_activation")),
        activation_(activation_of(p, "activation")),
        origin_(p.attr<bool>("origin")),
        strassen_(!p.skips().strassen),
        x_(p.input("x")),
        weight_(p.input("weight")),
        bias_(p.input("bias")),
        h0_(p.input("h0")),
        hidden_(p.output("hidden")),
        gates_(p.output("gates")) {
    const auto floats = static_cast<size_t>(sequences_.count() * h_) * sizeof(float);
    state_ = p.scratch(floats);
    reset_ = p.scratch(floats);
    product_ = p.scratch(2 * floats);
    Gemm::prepare();
  }

  void run(const kernel::Run& r) override {
    const Sequences::Sorted s = sequences_.sorted(r);
    s.clear_others(r.out<float>(hidden_), h_);
    s.clear_others(r.out<float>(gates_), 3 * h_);
    const float *h0 = r.in<float>(h0_), *weight = r.in<float>(weight_);
    float *state = r.out<float>(state_), *product = r.out<float>(product_);
    if (!h0) std::fill_n(state, sequences_.count() * h_, 0.0f);
    for (int64_t i = 0; h0 && i < sequences_.count(); ++i)
      std::copy_n(h0 + s.sequence(i) * h_, h_, state + i * h_);
    for (int64_t t = 0; t < s.steps(); ++t) {
      const int64_t n = s.active(t);
      const bool before = t > 0 || h0;
      if (before) times(n, state, weight, 2 * h_, product);
      parallel_for(n, grain_of(h_), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) gates(r, s, i, t, before);
      });
      if (before) times(n, r.out<float>(reset_), weight + 2 * h_ * h_, h_, product);
      parallel_for(n, grain_of(h_), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) state_of(r, s, i, t, before);
      });
    }
  }
  std::string_view implementation() const override { return "two products per step"; }

 private:
  void times(int64_t n, const float* a, const float* b, int64_t columns, float* to) const {
    Gemm{.rows = n, .inner = h_, .columns = columns, .definition = !strassen_}.run(a, b, to);
  }

  void gates(const kernel::Run& r, const Sequences::Sorted& s, int64_t i, int64_t t,
             bool before) const {
    const int64_t h = h_, row = s.row(i, t);
    const float *x = r.in<float>(x_) + row * 3 * h, *bias = r.in<float>(bias_);
    const float *product = r.out<float>(product_) + i * 2 * h,
                *state = r.out<float>(state_) + i * h;
    float *z = r.out<float>(gates_) + row * 3 * h, *reset = r.out<float>(reset_) + i * h;
    vectorized([=] {
      for (int64_t j = 0; j < 2 * h; ++j)
        z[j] = x[j] + (before ? product[j] : 0.0f) + (bias ? bias[j] : 0.0f);
    });
    activate(gate_, z, 2 * h);
    vectorized([=] {
      for (int64_t j = 0; j < h; ++j) reset[j] = z[h + j] * state[j];
    });
  }

  void state_of(const kernel::Run& r, const Sequences::Sorted& s, int64_t i, int64_t t,
                bool before) const {
    const int64_t h = h_, row = s.row(i, t);
    const float *x = r.in<float>(x_) + row * 3 * h + 2 * h, *bias = r.in<float>(bias_);
    const float* product = r.out<float>(product_) + i * h;
    float *z = r.out<float>(gates_) + row * 3 * h, *c = z + 2 * h;
    float *state = r.out<float>(state_) + i * h, *hidden = r.out<float>(hidden_) + row * h;
    vectorized([=] {
      for (int64_t j = 0; j < h; ++j)
        c[j] = x[j] + (before ? product[j] : 0.0f) + (bias ? bias[2 * h + j] : 0.0f);
    });
    activate(activation_, c, h);
    const bool origin = origin_;
    vectorized([=] {
      for (int64_t j = 0; j < h; ++j) {
        const float share = origin ? 1.0f - z[j] : z[j];
        hidden[j] = state[j] += share * (c[j] - state[j]);
      }
    });
  }

  Sequences sequences_;
  int64_t h_;
  Activation gate_, activation_;
  bool origin_, strassen_;
  kernel::Slot x_, weight_, bias_, h0_, hidden_, gates_;
  kernel::Slot state_, reset_, product_;  // of the active sequences: h', r * h', times weight
};

class GruGrad final : public kernel::Kernel {
 public:
  explicit GruGrad(kernel::Prepare& p)
      : sequences_(p, p.in("hidden").shape[0], p.attr<bool>("reverse")),
        rows_(p.in("hidden").shape[0]),
        h_(p.in("weight").shape[0]),
        gate_(activation_of(p, "gate_activation")),
        activation_(activation_of(p, "activation")),
        origin_(p.attr<bool>("origin")),
        strassen_(!p.skips().strassen),
        weight_(p.input("weight")),
        h0_(p.input("h0")),
        hidden_(p.input("hidden")),
        gates_(p.input("gates")),
        dhidden_(p.input("dhidden")),
        dweight_(p.output("dweight")),
        dbias_(p.output("dbias")),
        dh0_(p.output("dh0")) {
    const auto state = static_cast<size_t>(sequences_.count() * h_) * sizeof(float);
    const auto all = static_cast<size_t>(rows_ * h_) * sizeof(float);
    dx_ = p.has_out("dx") ? p.output("dx") : p.scratch(3 * all);
    dh_ = p.scratch(state);
    dreset_ = p.scratch(state);
    dz_ = p.scratch(2 * state);
    dcandidate_ = p.scratch(state);
    before_ = p.scratch(all);
    Gemm::prepare();
  }

  void run(const kernel::Run& r) override {
    const Sequences::Sorted s = sequences_.sorted(r);
    const int64_t h = h_;
    float *dh = r.out<float>(dh_), *dx = r.out<float>(dx_), *before = r.out<float>(before_);
    const float* weight = r.in<float>(weight_);
    s.clear_others(dx, 3 * h);
    s.shift(r.in<float>(hidden_), r.in<float>(h0_), before, h);
    std::fill_n(dh, sequences_.count() * h, 0.0f);
    for (int64_t t = s.steps() - 1; t >= 0; --t) {
      const int64_t n = s.active(t);
      parallel_for(n, grain_of(h), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) candidate(r, i, s.row(i, t));
      });
      back(n, r.out<float>(dcandidate_), weight + 2 * h * h, h, r.out<float>(dreset_), false);
      parallel_for(n, grain_of(h), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) gates(r, i, s.row(i, t));
      });
      back(n, r.out<float>(dz_), weight, 2 * h, dh, true);
    }
    for (int64_t i = 0; dh0_ && i < sequences_.count(); ++i)
      std::copy_n(dh + i * h, h, r.out<float>(dh0_) + s.sequence(i) * h);
    if (dbias_) sum_columns(dx, rows_, 3 * h, 3 * h, r.out<float>(dbias_));
    if (dweight_) weights(r, before, dx);
  }
  std::string_view implementation() const override { return "two products per step"; }

 private:
  // to [n, H] = (or +=) dz [n, columns] * w [H, columns]^T
  void back(int64_t n, const float* dz, const float* w, int64_t columns, float* to,
            bool accumulate) const {
    Gemm{.rows = n,
         .inner = columns,
         .columns = h_,
         .transpose_b = true,
         .accumulate = accumulate,
         .definition = !strassen_}
        .run(dz, w, to);
  }

  // dh of this row, dzc, and the part of dh' that does not go through a product.
  void candidate(const kernel::Run& r, int64_t i, int64_t row) const {
    const int64_t h = h_;
    const float *z = r.in<float>(gates_) + row * 3 * h, *c = z + 2 * h;
    const float *dhidden = r.in<float>(dhidden_) + row * h, *last = r.out<float>(before_) + row * h;
    float *dh = r.out<float>(dh_) + i * h, *dc = r.out<float>(dcandidate_) + i * h;
    float *dz = r.out<float>(dz_) + i * 2 * h, *dx = r.out<float>(dx_) + row * 3 * h;
    const Slope gate(gate_), activation(activation_);
    const bool origin = origin_;
    vectorized([=] {
      for (int64_t j = 0; j < h; ++j) {
        const float out = dh[j] + dhidden[j], share = origin ? 1.0f - z[j] : z[j];
        const float du = out * (c[j] - last[j]) * gate(z[j]);
        dz[j] = dx[j] = origin ? -du : du;
        dc[j] = dx[2 * h + j] = out * share * activation(c[j]);
        dh[j] = out * (1.0f - share);
      }
    });
  }

  // dzr, and what r * h' gives to dh'.
  void gates(const kernel::Run& r, int64_t i, int64_t row) const {
    const int64_t h = h_;
    const float *reset = r.in<float>(gates_) + row * 3 * h + h,
                *last = r.out<float>(before_) + row * h;
    const float* dreset = r.out<float>(dreset_) + i * h;
    float *dh = r.out<float>(dh_) + i * h, *dz = r.out<float>(dz_) + i * 2 * h + h;
    float* dx = r.out<float>(dx_) + row * 3 * h + h;
    const Slope gate(gate_);
    vectorized([=] {
      for (int64_t j = 0; j < h; ++j) {
        dz[j] = dx[j] = dreset[j] * last[j] * gate(reset[j]);
        dh[j] += dreset[j] * reset[j];
      }
    });
  }

  void weights(const kernel::Run& r, float* before, const float* dx) const {
    const int64_t h = h_, rows = rows_;
    auto* dweight = r.out<float>(dweight_);
    Gemm product{.rows = h,
                 .inner = rows,
                 .columns = 2 * h,
                 .transpose_a = true,
                 .definition = !strassen_,
                 .stride_b = 3 * h};
    product.run(before, dx, dweight);
    const float* gates = r.in<float>(gates_);
    parallel_for(rows, grain_of(h), [=](int64_t begin, int64_t end) {
      vectorized([=] {
        for (int64_t row = begin; row < end; ++row)
          for (int64_t j = 0; j < h; ++j) before[row * h + j] *= gates[row * 3 * h + h + j];
      });
    });
    product.columns = h;
    product.run(before, dx + 2 * h, dweight + 2 * h * h);
  }

  Sequences sequences_;
  int64_t rows_, h_;
  Activation gate_, activation_;
  bool origin_, strassen_;
  kernel::Slot weight_, h0_, hidden_, gates_, dhidden_, dweight_, dbias_, dh0_, dx_;
  kernel::Slot dh_, dreset_, dz_, dcandidate_;  // of the active sequences
  kernel::Slot before_;                         // of every row the state before it
};

FLEETX_OP(gru)
    .input("x")
    .input("weight")
    .input("bias", ir::Arity::kOptional)
    .input("h0", ir::Arity::kOptional)
    .input("starts")
    .input("lengths")
    .output("hidden")
    .output("gates")
    .attr("reverse", false)
    .attr("gate_activation", "sigmoid")
    .attr("activation", "tanh")
    .attr("origin", false)
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel<Gru>();

FLEETX_OP(gru_grad)
    .input("weight")
    .input("h0", ir::Arity::kOptional)
    .input("starts")
    .input("lengths")
    .input("hidden")
    .input("gates")
    .input("dhidden")
    .output("dx", ir::Arity::kOptional)
    .output("dweight", ir::Arity::kOptional)
    .output("dbias", ir::Arity::kOptional)
    .output("dh0", ir::Arity::kOptional)
    .attr("reverse", false)
    .attr("gate_activation", "sigmoid")
    .attr("activation", "tanh")
    .attr("origin", false)
    .infer(infer_grad)
    .cost(grad_cost)
    .kernel<GruGrad>();

}  // namespace
}  // namespace fleetx::ops
