// layer_norm: x seen as [rows, columns], the columns being the dimensions from begin_norm_axis on;
// each row is brought to mean 0 and variance 1, then scaled and shifted by column.
//   inv_std = 1 / sqrt(variance + epsilon), xhat = (x - mean) * inv_std, out = xhat * scale + bias
//   mean and inv_std have the shape of x before begin_norm_axis
// With g = dout * scale and averages over a row:
//   dx = inv_std * (g - average(g) - xhat * average(g * xhat))
//   dscale = sum over rows of dout * xhat, dbias = sum over rows of dout
// x, out and their gradients are f32, bf16 or f16 (a row is converted in cache); all else is f32.
#include <cmath>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/half.h"

namespace fleetx::ops {
namespace {

int axis_of(const ir::Infer& c) {
  const int rank = c.in("x").shape.rank();
  const int axis = normalize_axis(c.attr<int64_t>("begin_norm_axis"), rank);
  c.check(axis >= 0 && axis < rank, c.show("x"), "; begin_norm_axis is ",
          c.attr<int64_t>("begin_norm_axis"));
  return axis;
}

Shape rows_of(const ir::Infer& c) {
  const auto& dims = c.in("x").shape.dims();
  return Shape(std::vector<int64_t>(dims.begin(), dims.begin() + axis_of(c)));
}

Shape check(const ir::Infer& c) {
  c.check(is_f32_or_half(c.in("x").dtype), c.show("x"), "; expected f32, bf16 or f16");
  const Shape& x = c.in("x").shape;
  const int64_t columns = x.numel(axis_of(c), x.rank());
  c.check(columns > 0, c.show("x"), "; nothing to normalise");
  return {columns};
}

void infer(ir::Infer& c) {
  const Shape columns = check(c);
  for (const auto* slot : {"scale", "bias"})
    if (c.has(slot))
      c.check(c.in(slot).dtype == DType::kF32 && c.in(slot).shape == columns, c.show(slot),
              "; expected f32", columns, " for ", c.show("x"));
  c.check(c.attr<double>("epsilon") > 0, "epsilon is ", c.attr<double>("epsilon"),
          "; must be positive");
  c.out("out") = c.in("x");
  c.out("mean") = c.out("inv_std") = {DType::kF32, rows_of(c)};
}

void grad(ir::Grad& g) {
  std::vector<ir::Dest> dests;
  for (const auto* slot : {"x", "scale", "bias"})
    if (g.needs(slot)) dests.emplace_back(str("d", slot), g.dx(slot));
  const ir::Results d = g.op("layer_norm_grad",
                             {{"x", g.in("x")},
                              {"scale", g.in("scale")},
                              {"mean", g.out("mean")},
                              {"inv_std", g.out("inv_std")},
                              {"dout", g.dout("out")}},
                             {{"begin_norm_axis", g.attr<int64_t>("begin_norm_axis")}}, dests);
  for (const auto* slot : {"x", "scale", "bias"})
    if (g.needs(slot)) g.set(slot, d[str("d", slot)]);
}

ir::Cost cost(const ir::Infer& c) {
  return {.flops = 8.0 * static_cast<double>(c.in("x").shape.numel())};
}

constexpr int64_t kGrain = 1 << 13;  // elements

// Rows of an argument as f32: where they stand, or converted in a thread's own memory.
class RowsOf {
 public:
  RowsOf() = default;
  // `copies`: a row for each part of the work.
  RowsOf(kernel::Slot slot, DType dtype, int64_t columns, kernel::Slot copies)
      : slot_(slot), copies_(copies), dtype_(dtype), columns_(columns) {}
  explicit operator bool() const { return static_cast<bool>(slot_); }

  float* room(const kernel::Run& r, int64_t row, int64_t part) const {
    if (!slot_) return nullptr;
    return copies_ ? r.out<float>(copies_) + part * columns_ : r.out<float>(slot_) + row * columns_;
  }
  const float* read(const kernel::Run& r, int64_t row, int64_t part) const {
    float* to = room(r, row, part);
    if (copies_) widen(dtype_, r.in<uint16_t>(slot_) + row * columns_, to, columns_);
    return to;
  }
  void write(const kernel::Run& r, int64_t row, int64_t part) const {
    if (slot_ && copies_)
      narrow(room(r, row, part), dtype_, r.out<uint16_t>(slot_) + row * columns_, columns_);
  }

 private:
  kernel::Slot slot_, copies_;
  DType dtype_ = f32;
  int64_t columns_ = 0;
};

kernel::Slot room_for(kernel::Prepare& p, int64_t rows, int64_t columns) {
  if (!is_half(p.in("x").dtype)) return {};
  return p.scratch(static_cast<size_t>(rows * columns) * sizeof(float));
}

class LayerNorm final : public kernel::Kernel {
 public:
  explicit LayerNorm(kernel::Prepare& p)
      : rows_(p.out("mean").numel()),
        columns_(rows_ == 0 ? 0 : p.in("x").numel() / rows_),
        parts_(parts_for(rows_, kGrain / std::max<int64_t>(columns_, 1) + 1)),
        epsilon_(p.attr<float>("epsilon")),
        room_(room_for(p, parts_, columns_)),
        x_(p.input("x"), p.in("x").dtype, columns_, room_),
        scale_(p.input("scale")),
        bias_(p.input("bias")),
        out_(p.output("out"), p.in("x").dtype, columns_, room_),
        mean_(p.output("mean")),
        inv_std_(p.output("inv_std")) {}

  void run(const kernel::Run& r) override {
    const float *scale = r.in<float>(scale_), *bias = r.in<float>(bias_);
    parallel_parts(rows_, parts_, [&](int part, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        normalise(x_.read(r, row, part), scale, bias, out_.room(r, row, part),
                  r.out<float>(mean_) + row, r.out<float>(inv_std_) + row);
        out_.write(r, row, part);
      }
    });
  }
  std::string_view implementation() const override { return "own:rows"; }

 private:
  void normalise(const float* x, const float* scale, const float* bias, float* out, float* mean_out,
                 float* inv_std_out) const {
    const int64_t n = columns_;
    const float epsilon = epsilon_;
    vectorized([=] {
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < n; ++i) sum += x[i];
      const float mean = sum / static_cast<float>(n);
      float squares = 0;
#pragma omp simd reduction(+ : squares)
      for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
      const float inv_std = 1.0f / std::sqrt(squares / static_cast<float>(n) + epsilon);
      if (scale && bias)
        for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * inv_std * scale[i] + bias[i];
      else
        for (int64_t i = 0; i < n; ++i)
          out[i] = (x[i] - mean) * inv_std * (scale ? scale[i] : 1.0f) + (bias ? bias[i] : 0.0f);
      *mean_out = mean;
      *inv_std_out = inv_std;
    });
  }

  int64_t rows_, columns_;
  int parts_;
  float epsilon_;
  kernel::Slot room_;  // of a row that is converted, and normalised in place
  RowsOf x_;
  kernel::Slot scale_, bias_;
  RowsOf out_;
  kernel::Slot mean_, inv_std_;
};

void infer_grad(ir::Infer& c) {
  const ir::TensorType columns{DType::kF32, check(c)}, rows{DType::kF32, rows_of(c)};
  c.check(c.in("dout") == c.in("x"), c.show("dout"), "; must be like ", c.show("x"));
  for (const auto* slot : {"mean", "inv_std"})
    c.check(c.in(slot) == rows, c.show(slot), "; expected ", rows);
  c.check(!c.has("scale") || c.in("scale") == columns, c.show("scale"), "; expected ", columns);
  if (c.out_count("dx") > 0) c.out("dx") = c.in("x");
  for (const auto* slot : {"dscale", "dbias"})
    if (c.out_count(slot) > 0) c.out(slot) = columns;
}

ir::Cost cost_grad(const ir::Infer& c) {
  return {.flops = 14.0 * static_cast<double>(c.in("x").shape.numel())};
}

class LayerNormGrad final : public kernel::Kernel {
 public:
  explicit LayerNormGrad(kernel::Prepare& p)
      : rows_(p.in("mean").numel()),
        columns_(rows_ == 0 ? 0 : p.in("x").numel() / rows_),
        pieces_(std::clamp<int64_t>(rows_ / 16, 1, 64)),
        x_(p.input("x"), p.in("x").dtype, columns_, room_for(p, pieces_, columns_)),
        scale_(p.input("scale")),
        mean_(p.input("mean")),
        inv_std_(p.input("inv_std")),
        room_(room_for(p, pieces_, columns_)),
        dout_(p.input("dout"), p.in("x").dtype, columns_, room_),
        dx_(p.output("dx"), p.in("x").dtype, columns_, room_),
        dscale_(p.output("dscale")),
        dbias_(p.output("dbias")) {
    if (dscale_ || dbias_)
      partial_ = p.scratch(static_cast<size_t>(2 * pieces_ * columns_) * sizeof(float));
  }

  // Rows are cut into pieces by their number alone; the sums of a piece stay in cache.
  void run(const kernel::Run& r) override {
    parallel_for(pieces_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        float* sums = partial_ ? r.out<float>(partial_) + 2 * piece * columns_ : nullptr;
        if (sums) std::fill(sums, sums + 2 * columns_, 0.0f);
        for (int64_t row = rows_ * piece / pieces_; row < rows_ * (piece + 1) / pieces_; ++row)
          backward(r, row, piece, sums);
      }
    });
    if (dscale_) add_up(r.in<float>(partial_), r.out<float>(dscale_));
    if (dbias_) add_up(r.in<float>(partial_) + columns_, r.out<float>(dbias_));
  }
  std::string_view implementation() const override { return "own:rows"; }

 private:
  void backward(const kernel::Run& r, int64_t row, int64_t piece, float* sums) const {
    const int64_t n = columns_;
    const float *x = x_.read(r, row, piece), *dout = dout_.read(r, row, piece);
    const float* scale = r.in<float>(scale_);
    float* dx = dx_.room(r, row, piece);
    const float mean = r.in<float>(mean_)[row], inv_std = r.in<float>(inv_std_)[row];
    vectorized([=] {
      if (sums)
        for (int64_t i = 0; i < n; ++i) {
          sums[i] += dout[i] * ((x[i] - mean) * inv_std);
          sums[n + i] += dout[i];
        }
      if (!dx) return;
      float sum = 0, with_xhat = 0;
#pragma omp simd reduction(+ : sum, with_xhat)
      for (int64_t i = 0; i < n; ++i) {
        const float g = scale ? dout[i] * scale[i] : dout[i];
        sum += g;
        with_xhat += g * ((x[i] - mean) * inv_std);
      }
      const float a = sum / static_cast<float>(n), b = with_xhat / static_cast<float>(n);
      for (int64_t i = 0; i < n; ++i) {
        const float g = scale ? dout[i] * scale[i] : dout[i];
        dx[i] = inv_std * (g - a - (x[i] - mean) * inv_std * b);
      }
    });
    dx_.write(r, row, piece);
  }
  void add_up(const float* partial, float* out) const {
    const int64_t n = columns_, pieces = pieces_;
    parallel_for(n, 1 << 10, [=](int64_t begin, int64_t end) {
      vectorized([=] {
        for (int64_t i = begin; i < end; ++i) out[i] = partial[i];
        for (int64_t piece = 1; piece < pieces; ++piece)
          for (int64_t i = begin; i < end; ++i) out[i] += partial[2 * piece * n + i];
      });
    });
  }

  int64_t rows_, columns_, pieces_;
  RowsOf x_;
  kernel::Slot scale_, mean_, inv_std_;
  kernel::Slot room_;  // of rows of dout that are converted, and become dx in place
  RowsOf dout_, dx_;
  kernel::Slot dscale_, dbias_, partial_;
};

FLEETX_OP(layer_norm)
    .input("x")
    .input("scale", ir::Arity::kOptional)
    .input("bias", ir::Arity::kOptional)
    .output("out")
    .output("mean")
    .output("inv_std")
    .attr("begin_norm_axis", 1)
    .attr("epsilon", 1e-5)
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel<LayerNorm>()
    .in_place("out", "x");

FLEETX_OP(layer_norm_grad)
    .input("x")
    .input("scale", ir::Arity::kOptional)
    .input("mean")
    .input("inv_std")
    .input("dout")
    .output("dx", ir::Arity::kOptional)
    .output("dscale", ir::Arity::kOptional)
    .output("dbias", ir::Arity::kOptional)
    .attr("begin_norm_axis", 1)
    .infer(infer_grad)
    .cost(cost_grad)
    .kernel<LayerNormGrad>()
    .in_place("dx", "dout");

}  // namespace
}  // namespace fleetx::ops
