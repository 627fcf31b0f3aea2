// lstm: a recurrent layer over a ragged batch. Sequence b is the rows starts[b] .. starts[b] +
// lengths[b] - 1 of x [N, 4H], what its inputs give for the gates g, i, f, o. Row by row, from the
// last one with `reverse`:
//   z = x + bias + h' * weight              weight [H, 4H]; h', c': of the row before
//   g = candidate(zg), i = gate(zi + wi * c'), f = gate(zf + wf * c')
//   c = f * c' + i * g,  o = gate(zo + wo * c),  h = o * activation(c)
// bias is [4H], or [7H]: with the peepholes wi, wf, wo behind. Before the first row h' and c' are
// h0 and c0 [B, H], or zero. hidden and cell are [N, H]; rows of no sequence are zero. `gates` [N,
// 4H] keeps g, i, f, o for backward, which goes through the rows the other way:
//   dzo = dh * activation(c) * gate', dc += dh * o * activation' + dzo * wo
//   dzg = dc * i * candidate', dzi = dc * g * gate', dzf = dc * c' * gate'
//   dc' = dc * f + dzi * wi + dzf * wf, dh' = dz * weight^T; dx = dz
//   dweight = sum of h'^T dz: one product over all rows.
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/gemm.h"
#include "fleetx/ops/lib/recurrence.h"

namespace fleetx::ops {
namespace {

constexpr const char* kActivationAttrs[] = {"gate_activation", "cell_activation",
                                            "candidate_activation"};

void infer(ir::Infer& c) {
  const Shape &x = c.in("x").shape, &weight = c.in("weight").shape;
  for (const char* slot : {"x", "weight", "bias", "h0", "c0"})
    c.check(!c.has(slot) || c.in(slot).dtype == f32, c.show(slot), "; expected f32");
  c.check(weight.rank() == 2 && weight[1] == 4 * weight[0], c.show("weight"), "; must be [H, 4 H]");
  const int64_t h = weight[0];
  c.check(x.rank() == 2 && x[1] == 4 * h, c.show("x"), "; must be [rows, ", 4 * h, "] for ",
          c.show("weight"));
  check_sequences(c);
  if (c.has("bias"))
    c.check(c.in("bias").shape == Shape{4 * h} || c.in("bias").shape == Shape{7 * h},
            c.show("bias"), "; must be [", 4 * h, "], or [", 7 * h, "] with peepholes");
  const Shape state = {c.in("starts").shape[0], h};
  for (const char* slot : {"h0", "c0"})
    c.check(!c.has(slot) || c.by_example() || c.in(slot).shape == state, c.show(slot), "; must be ",
            state);
  for (const char* attr : kActivationAttrs) check_activation(c, attr);
  c.out("hidden") = c.out("cell") = {f32, {x[0], h}};
  c.out("gates") = {f32, x};
}

void grad(ir::Grad& g) {
  constexpr const char* kInputs[] = {"x", "weight", "bias", "h0", "c0"};
  std::vector<ir::Dest> dests;
  for (const char* slot : kInputs)
    if (g.has(slot) && g.needs(slot)) dests.emplace_back(str("d", slot), g.dx(slot));
  const ir::Results d = g.op("lstm_grad",
                             {{"weight", g.in("weight")},
                              {"bias", g.in("bias")},
                              {"h0", g.in("h0")},
                              {"c0", g.in("c0")},
                              {"starts", g.in("starts")},
                              {"lengths", g.in("lengths")},
                              {"hidden", g.out("hidden")},
                              {"cell", g.out("cell")},
                              {"gates", g.out("gates")},
                              {"dhidden", g.dout("hidden")},
                              {"dcell", g.has_dout("cell") ? g.dout("cell") : ir::Var()}},
                             g.attrs(), dests);
  for (const char* slot : kInputs)
    if (g.has(slot) && g.needs(slot)) g.set(slot, d[str("d", slot)]);
}

void infer_grad(ir::Infer& c) {
  const Shape& gates = c.in("gates").shape;
  const int64_t h = c.in("weight").shape[0];
  c.check(c.in("dhidden") == c.in("hidden"), c.show("dhidden"), ", but ", c.show("hidden"));
  if (c.out_count("dx") > 0) c.out("dx") = {f32, gates};
  if (c.out_count("dweight") > 0) c.out("dweight") = {f32, {h, 4 * h}};
  for (const char* slot : {"bias", "h0", "c0"})
    if (c.out_count(str("d", slot)) > 0) c.out(str("d", slot)) = c.in(slot);
}

ir::Cost cost(const ir::Infer& c) {
  const auto h = static_cast<double>(c.in("weight").shape[0]);
  return {.flops = static_cast<double>(c.in("x").shape[0]) * h * (8.0 * h + 30.0)};
}

ir::Cost grad_cost(const ir::Infer& c) {
  const auto h = static_cast<double>(c.in("weight").shape[0]);
  return {.flops = static_cast<double>(c.in("hidden").shape[0]) * h * (16.0 * h + 40.0)};
}

int64_t grain_of(int64_t h) { return (1 << 11) / h + 1; }

class Lstm final : public kernel::Kernel {
 public:
  explicit Lstm(kernel::Prepare& p)
      : sequences_(p, p.in("x").shape[0], p.attr<bool>("reverse")),
        h_(p.in("weight").shape[0]),
        peepholes_(p.has("bias") && p.in("bias").numel() == 7 * h_),
        gate_(activation_of(p, "gate_activation")),
        cell_act_(activation_of(p, "cell_activation")),
        candidate_(activation_of(p, "candidate_activation")),
        strassen_(!p.skips().strassen),
        x_(p.input("x")),
        weight_(p.input("weight")),
        bias_(p.input("bias")),
        h0_(p.input("h0")),
        c0_(p.input("c0")),
        hidden_(p.output("hidden")),
        cell_(p.output("cell")),
        gates_(p.output("gates")) {
    const auto floats = static_cast<size_t>(sequences_.count() * h_) * sizeof(float);
    state_ = p.scratch(floats);
    product_ = p.scratch(4 * floats);
    Gemm::prepare();
  }

  void run(const kernel::Run& r) override {
    const Sequences::Sorted s = sequences_.sorted(r);
    s.clear_others(r.out<float>(hidden_), h_);
    s.clear_others(r.out<float>(cell_), h_);
    s.clear_others(r.out<float>(gates_), 4 * h_);
    const float* h0 = r.in<float>(h0_);
    auto* state = r.out<float>(state_);
    for (int64_t i = 0; h0 && i < sequences_.count(); ++i)
      std::copy_n(h0 + s.sequence(i) * h_, h_, state + i * h_);
    for (int64_t t = 0; t < s.steps(); ++t) {
      const int64_t n = s.active(t);
      const bool before = t > 0 || h0;
      if (before)
        Gemm{.rows = n, .inner = h_, .columns = 4 * h_, .definition = !strassen_}.run(
            state, r.in<float>(weight_), r.out<float>(product_));
      parallel_for(n, grain_of(h_), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) step(r, s, i, t, before);
      });
    }
  }
  std::string_view implementation() const override { return "a product per step"; }

 private:
  void step(const kernel::Run& r, const Sequences::Sorted& s, int64_t i, int64_t t,
            bool before) const {
    const int64_t h = h_, row = s.row(i, t);
    const float *x = r.in<float>(x_) + row * 4 * h, *bias = r.in<float>(bias_);
    const float* product = r.out<float>(product_) + i * 4 * h;
    float* z = r.out<float>(gates_) + row * 4 * h;
    vectorized([=] {
      for (int64_t j = 0; j < 4 * h; ++j)
        z[j] = x[j] + (before ? product[j] : 0.0f) + (bias ? bias[j] : 0.0f);
    });
    float *cell = r.out<float>(cell_) + row * h, *hidden = r.out<float>(hidden_) + row * h;
    const float* last = t > 0 ? r.out<float>(cell_) + s.row(i, t - 1) * h
                        : c0_ ? r.in<float>(c0_) + s.sequence(i) * h
                              : nullptr;
    const float* peep = peepholes_ ? bias + 4 * h : nullptr;
    float *g = z, *in = z + h, *f = z + 2 * h, *o = z + 3 * h;
    if (peep && last)
      vectorized([=] {
        for (int64_t j = 0; j < h; ++j) {
          in[j] += peep[j] * last[j];
          f[j] += peep[h + j] * last[j];
        }
      });
    activate(candidate_, g, h);
    activate(gate_, in, 2 * h);
    vectorized([=] {
      for (int64_t j = 0; j < h; ++j) {
        cell[j] = in[j] * g[j] + (last ? f[j] * last[j] : 0.0f);
        hidden[j] = cell[j];
        if (peep) o[j] += peep[2 * h + j] * cell[j];
      }
    });
    activate(gate_, o, h);
    activate(cell_act_, hidden, h);
    float* state = r.out<float>(state_) + i * h;
    vectorized([=] {
      for (int64_t j = 0; j < h; ++j) state[j] = hidden[j] *= o[j];
    });
  }

  Sequences sequences_;
  int64_t h_;
  bool peepholes_;
  Activation gate_, cell_act_, candidate_;
  bool strassen_;
  kernel::Slot x_, weight_, bias_, h0_, c0_, hidden_, cell_, gates_;
  kernel::Slot state_, product_;  // h of the active sequences; times weight
};

class LstmGrad final : public kernel::Kernel {
 public:
  explicit LstmGrad(kernel::Prepare& p)
      : sequences_(p, p.in("hidden").shape[0], p.attr<bool>("reverse")),
        rows_(p.in("hidden").shape[0]),
        h_(p.in("weight").shape[0]),
        peepholes_(p.has("bias") && p.in("bias").numel() == 7 * h_),
        gate_(activation_of(p, "gate_activation")),
        cell_act_(activation_of(p, "cell_activation")),
        candidate_(activation_of(p, "candidate_activation")),
        strassen_(!p.skips().strassen),
        weight_(p.input("weight")),
        bias_(p.input("bias")),
        h0_(p.input("h0")),
        c0_(p.input("c0")),
        hidden_(p.input("hidden")),
        cell_(p.input("cell")),
        gates_(p.input("gates")),
        dhidden_(p.input("dhidden")),
        dcell_(p.input("dcell")),
        dweight_(p.output("dweight")),
        dbias_(p.output("dbias")),
        dh0_(p.output("dh0")),
        dc0_(p.output("dc0")) {
    const auto state = static_cast<size_t>(sequences_.count() * h_) * sizeof(float);
    const auto all = static_cast<size_t>(rows_ * h_) * sizeof(float);
    dx_ = p.has_out("dx") ? p.output("dx") : p.scratch(4 * all);
    dh_ = p.scratch(state);
    dc_ = p.scratch(state);
    dz_ = p.scratch(4 * state);
    before_ = p.scratch(all);
    Gemm::prepare();
  }

  void run(const kernel::Run& r) override {
    const Sequences::Sorted s = sequences_.sorted(r);
    const int64_t h = h_, states = sequences_.count() * h;
    float *dh = r.out<float>(dh_), *dc = r.out<float>(dc_), *dx = r.out<float>(dx_);
    s.clear_others(dx, 4 * h);
    std::fill_n(dh, states, 0.0f);
    std::fill_n(dc, states, 0.0f);
    for (int64_t t = s.steps() - 1; t >= 0; --t) {
      const int64_t n = s.active(t);
      parallel_for(n, grain_of(h), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) step(r, s, i, t);
      });
      if (t > 0 || dh0_)
        Gemm{.rows = n, .inner = 4 * h, .columns = h, .transpose_b = true, .definition = !strassen_}
            .run(r.out<float>(dz_), r.in<float>(weight_), dh);
    }
    for (int64_t i = 0; i < sequences_.count(); ++i) {
      const int64_t to = s.sequence(i) * h;
      if (dh0_) std::copy_n(dh + i * h, h, r.out<float>(dh0_) + to);
      if (dc0_) std::copy_n(dc + i * h, h, r.out<float>(dc0_) + to);
    }
    auto* before = r.out<float>(before_);
    if (dweight_) {
      s.shift(r.in<float>(hidden_), r.in<float>(h0_), before, h);
      Gemm{.rows = h,
           .inner = rows_,
           .columns = 4 * h,
           .transpose_a = true,
           .definition = !strassen_}
          .run(before, dx, r.out<float>(dweight_));
    }
    if (!dbias_) return;
    auto* dbias = r.out<float>(dbias_);
    sum_columns(dx, rows_, 4 * h, 4 * h, dbias);
    if (!peepholes_) return;
    s.shift(r.in<float>(cell_), r.in<float>(c0_), before, h);
    peephole(dx + h, before, dbias + 4 * h);
    peephole(dx + 2 * h, before, dbias + 5 * h);
    peephole(dx + 3 * h, r.in<float>(cell_), dbias + 6 * h);
  }
  std::string_view implementation() const override { return "a product per step"; }

 private:
  void step(const kernel::Run& r, const Sequences::Sorted& s, int64_t i, int64_t t) const {
    const int64_t h = h_, row = s.row(i, t);
    const float *z = r.in<float>(gates_) + row * 4 * h, *c = r.in<float>(cell_) + row * h;
    const float* dhidden = r.in<float>(dhidden_) + row * h;
    const float* dcell = dcell_ ? r.in<float>(dcell_) + row * h : nullptr;
    const float* last = t > 0 ? r.in<float>(cell_) + s.row(i, t - 1) * h
                        : c0_ ? r.in<float>(c0_) + s.sequence(i) * h
                              : nullptr;
    const float* peep = peepholes_ ? r.in<float>(bias_) + 4 * h : nullptr;
    const float *g = z, *in = z + h, *f = z + 2 * h, *o = z + 3 * h;
    float *dh = r.out<float>(dh_) + i * h, *dc = r.out<float>(dc_) + i * h;
    float *dz = r.out<float>(dz_) + i * 4 * h, *dx = r.out<float>(dx_) + row * 4 * h;
    float* shaped = dz;  // activation(c), until dz of g is known
    std::copy_n(c, h, shaped);
    activate(cell_act_, shaped, h);
    const Slope gate(gate_), cell_act(cell_act_), candidate(candidate_);
    // ivdep: `shaped` is the memory of dz, element by element; nothing else overlaps.
    vectorized([=] {
#pragma GCC ivdep
      for (int64_t j = 0; j < h; ++j) {
        const float out = dh[j] + dhidden[j], y = shaped[j], before = last ? last[j] : 0.0f;
        const float dzo = out * y * gate(o[j]);
        float d = dc[j] + out * o[j] * cell_act(y) + (dcell ? dcell[j] : 0.0f);
        if (peep) d += dzo * peep[2 * h + j];
        const float dzi = d * g[j] * gate(in[j]);
        const float dzf = d * before * gate(f[j]);
        dz[j] = d * in[j] * candidate(g[j]);
        dz[h + j] = dzi;
        dz[2 * h + j] = dzf;
        dz[3 * h + j] = dzo;
        dc[j] = d * f[j] + (peep ? dzi * peep[j] + dzf * peep[h + j] : 0.0f);
      }
    });
    std::copy_n(dz, 4 * h, dx);
  }

  // to[j] = the sum over all rows of dz[row, j] * factor[row, j].
  void peephole(const float* dz, const float* factor, float* to) const {
    const int64_t h = h_, rows = rows_;
    std::fill_n(to, h, 0.0f);
    vectorized([=] {
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t j = 0; j < h; ++j) to[j] += dz[row * 4 * h + j] * factor[row * h + j];
    });
  }

  Sequences sequences_;
  int64_t rows_, h_;
  bool peepholes_;
  Activation gate_, cell_act_, candidate_;
  bool strassen_;
  kernel::Slot weight_, bias_, h0_, c0_, hidden_, cell_, gates_, dhidden_, dcell_;
  kernel::Slot dweight_, dbias_, dh0_, dc0_, dx_;
  kernel::Slot dh_, dc_, dz_;  // of the active sequences
  kernel::Slot before_;        // of every row the state before it
};

FLEETX_OP(lstm)
    .input("x")
    .input("weight")
    .input("bias", ir::Arity::kOptional)
    .input("h0", ir::Arity::kOptional)
    .input("c0", ir::Arity::kOptional)
    .input("starts")
    .input("lengths")
    .output("hidden")
    .output("cell")
    .output("gates")
    .attr("reverse", false)
    .attr("gate_activation", "sigmoid")
    .attr("cell_activation", "tanh")
    .attr("candidate_activation", "tanh")
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel<Lstm>();

FLEETX_OP(lstm_grad)
    .input("weight")
    .input("bias", ir::Arity::kOptional)
    .input("h0", ir::Arity::kOptional)
    .input("c0", ir::Arity::kOptional)
    .input("starts")
    .input("lengths")
    .input("hidden")
    .input("cell")
    .input("gates")
    .input("dhidden")
    .input("dcell", ir::Arity::kOptional)
    .output("dx", ir::Arity::kOptional)
    .output("dweight", ir::Arity::kOptional)
    .output("dbias", ir::Arity::kOptional)
    .output("dh0", ir::Arity::kOptional)
    .output("dc0", ir::Arity::kOptional)
    .attr("reverse", false)
    .attr("gate_activation", "sigmoid")
    .attr("cell_activation", "tanh")
    .attr("candidate_activation", "tanh")
    .infer(infer_grad)
    .cost(grad_cost)
    .kernel<LstmGrad>();

}  // namespace
}  // namespace fleetx::ops
