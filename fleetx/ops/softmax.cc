// softmax:     out = exp(x - m) / sum exp(x - m), m the largest x, along `axis`.
//   dx = out * (dout - sum(out * dout))
// log_softmax: out = x - m - log(sum exp(x - m)).   dx = dout - exp(out) * sum(dout)
// Both are row-major and keep only out for the gradient. Along the last axis oneDNN computes them;
// along another one it has no fast code, so own loops go over neighbouring columns together.
#include <cmath>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/half.h"
#include "fleetx/ops/lib/in_f32.h"
#include "fleetx/ops/lib/math.h"
#include "fleetx/ops/lib/onednn.h"

namespace fleetx::ops {
namespace {

using onednn::memory;

int axis_of(const ir::Infer& c, std::string_view slot) {
  const int rank = c.in(slot).shape.rank();
  const int axis = normalize_axis(c.attr<int64_t>("axis"), rank);
  c.check(is_f32_or_half(c.in(slot).dtype), c.show(slot), "; expected f32, bf16 or f16");
  c.check(axis >= 0 && axis < rank, c.show(slot), "; axis is ", c.attr<int64_t>("axis"));
  return axis;
}

void infer(ir::Infer& c) {
  axis_of(c, "x");
  c.out("out") = c.in("x");
}

void infer_grad(ir::Infer& c) {
  axis_of(c, "out");
  c.check(c.in("dout") == c.in("out"), c.show("dout"), "; must be like ", c.show("out"));
  c.out("dx") = c.in("out");
}

ir::Cost cost(const ir::Infer& c) {
  return {.flops = 5.0 * static_cast<double>(c.in("x").shape.numel())};
}

ir::Cost cost_grad(const ir::Infer& c) {
  return {.flops = 4.0 * static_cast<double>(c.in("dout").shape.numel())};
}

void grad(ir::Grad& g) {
  g.set("x", g.op(g.op().type() + "_grad", {{"out", g.out("out")}, {"dout", g.dout("out")}},
                  {{"axis", g.attr<int64_t>("axis")}}, {{"dx", g.dx("x")}}));
}

// x seen as [outer, n, inner], n being the axis.
struct View {
  int64_t outer, n, inner;

  View(const kernel::Prepare& p, const Shape& shape) {
    const int axis = normalize_axis(p.attr<int64_t>("axis"), shape.rank());
    outer = shape.numel(0, axis);
    n = shape[axis];
    inner = shape.numel(axis + 1, shape.rank());
  }
  memory::desc desc() const { return onednn::desc(DType::kF32, {outer, n}); }  // inner is 1
};

constexpr int64_t kColumns = 64;

// fn(offset of the first element, columns) for strips of columns, in parallel and vectorised.
template <class Fn>
void for_each_strip(const View& v, const Fn& fn) {
  const int64_t strips = (v.inner + kColumns - 1) / kColumns;
  parallel_for(v.outer * strips, (1 << 12) / (v.n * std::min(v.inner, kColumns)) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t column = i % strips * kColumns;
                   const int64_t columns = std::min(kColumns, v.inner - column);
                   const int64_t offset = i / strips * v.n * v.inner + column;
                   vectorized([=] { fn(offset, columns); });
                 }
               });
}

template <class Forward>
constexpr bool kLog = std::is_same_v<Forward, dnnl::logsoftmax_forward>;

template <class Forward>
typename Forward::primitive_desc forward(const memory::desc& md) {
  return {{dnnl::prop_kind::forward_training, md, 1}, onednn::attributes(), onednn::engine()};
}

template <class Forward>
class Softmax final : public kernel::Kernel {
 public:
  explicit Softmax(kernel::Prepare& p)
      : view_(p, p.in("x").shape), x_(p.input("x")), out_(p.output("out")) {
    if (view_.inner > 1) return;
    const memory::desc md = view_.desc();
    softmax_ = onednn::Primitive(p, forward<Forward>(md));
    softmax_.arg(DNNL_ARG_SRC, x_, md).arg(DNNL_ARG_DST, out_, md);
  }
  void run(const kernel::Run& r) override {
    if (softmax_) return softmax_.run(r);
    const int64_t n = view_.n, inner = view_.inner;
    const float* xs = r.in<float>(x_);
    float* outs = r.out<float>(out_);
    for_each_strip(view_, [=](int64_t offset, int64_t columns) {
      const float* x = xs + offset;
      float* out = outs + offset;
      float largest[kColumns], sum[kColumns] = {};
      std::copy(x, x + columns, largest);
      for (int64_t k = 1; k < n; ++k)
        for (int64_t j = 0; j < columns; ++j)
          largest[j] = x[k * inner + j] > largest[j] ? x[k * inner + j] : largest[j];
      for (int64_t k = 0; k < n; ++k)
        for (int64_t j = 0; j < columns; ++j) {
          const float e = math::exp(x[k * inner + j] - largest[j]);
          sum[j] += e;
          if constexpr (!kLog<Forward>) out[k * inner + j] = e;
        }
      if constexpr (kLog<Forward>)
        for (int64_t j = 0; j < columns; ++j) largest[j] += std::log(sum[j]);
      for (int64_t k = 0; k < n; ++k)
        for (int64_t j = 0; j < columns; ++j)
          out[k * inner + j] =
              kLog<Forward> ? x[k * inner + j] - largest[j] : out[k * inner + j] / sum[j];
    });
  }
  std::string_view implementation() const override {
    return softmax_ ? softmax_.implementation() : "own:columns";
  }

 private:
  View view_;
  kernel::Slot x_, out_;
  onednn::Primitive softmax_;
};

template <class Forward, class Backward>
class SoftmaxGrad final : public kernel::Kernel {
 public:
  explicit SoftmaxGrad(kernel::Prepare& p)
      : view_(p, p.in("dout").shape),
        out_(p.input("out")),
        dout_(p.input("dout")),
        dx_(p.output("dx")) {
    if (view_.inner > 1) return;
    const memory::desc md = view_.desc();
    softmax_ = onednn::Primitive(
        p, typename Backward::primitive_desc({md, md, 1}, onednn::attributes(), onednn::engine(),
                                             forward<Forward>(md)));
    softmax_.arg(DNNL_ARG_DST, out_, md)
        .arg(DNNL_ARG_DIFF_DST, dout_, md)
        .arg(DNNL_ARG_DIFF_SRC, dx_, md);
  }
  void run(const kernel::Run& r) override {
    if (softmax_) return softmax_.run(r);
    const int64_t n = view_.n, inner = view_.inner;
    const float *outs = r.in<float>(out_), *douts = r.in<float>(dout_);
    float* dxs = r.out<float>(dx_);
    for_each_strip(view_, [=](int64_t offset, int64_t columns) {
      const float *out = outs + offset, *dout = douts + offset;
      float* dx = dxs + offset;
      float sum[kColumns] = {};
      for (int64_t k = 0; k < n; ++k)
        for (int64_t j = 0; j < columns; ++j) {
          const int64_t i = k * inner + j;
          sum[j] += kLog<Forward> ? dout[i] : out[i] * dout[i];
        }
      for (int64_t k = 0; k < n; ++k)
        for (int64_t j = 0; j < columns; ++j) {
          const int64_t i = k * inner + j;
          dx[i] =
              kLog<Forward> ? dout[i] - math::exp(out[i]) * sum[j] : out[i] * (dout[i] - sum[j]);
        }
    });
  }
  std::string_view implementation() const override {
    return softmax_ ? softmax_.implementation() : "own:columns";
  }

 private:
  View view_;
  kernel::Slot out_, dout_, dx_;
  onednn::Primitive softmax_;
};

template <class Forward>
ir::OpRegistrar forward_op(const char* type) {
  ir::OpRegistrar op(type);
  op.input("x").output("out").attr("axis", -1).infer(infer).grad(grad).cost(cost);
  op.kernel(also_half<make_new<Softmax<Forward>>>).in_place("out", "x");
  return op;
}

template <class Forward, class Backward>
ir::OpRegistrar backward_op(const char* type) {
  ir::OpRegistrar op(type);
  op.input("out").input("dout").output("dx").attr("axis", -1).infer(infer_grad).cost(cost_grad);
  op.kernel(also_half<make_new<SoftmaxGrad<Forward, Backward>>>).in_place("dx", "dout");
  return op;
}

const ir::RegisterOp ops[] = {
    forward_op<dnnl::softmax_forward>("softmax"),
    backward_op<dnnl::softmax_forward, dnnl::softmax_backward>("softmax_grad"),
    forward_op<dnnl::logsoftmax_forward>("log_softmax"),
    backward_op<dnnl::logsoftmax_forward, dnnl::logsoftmax_backward>("log_softmax_grad"),
};

}  // namespace
}  // namespace fleetx::ops
