// Losses that compare x and label element by element, in one shape; out has that shape too:
//   mse_loss        (x - label)^2
//   l1_loss         |x - label|
//   smooth_l1_loss  d^2 / 2 if |d| < delta, else delta * (|d| - delta / 2), with d = x - label
//   log_loss        -label * log(x + epsilon) - (1 - label) * log(1 - x + epsilon)
//   kldiv_loss      label * (log(label) - x), 0 where label <= 0; x holds log-probabilities
//   sigmoid_cross_entropy  max(x, 0) - x * label + log(1 + e^-|x|), for logits x; 0 where the label
//                   is ignore_index; with normalize divided by the number of the others
// Both x and label get gradients. <name>_grad(x, label, dout) -> dx?, dlabel?.
#include <cmath>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/math.h"

namespace fleetx::ops {
namespace {

// A formula has value(x, y), dx(x, y), dy(x, y), and says whether value(0, 0) is 0, so that padding
// stays zero. look_at is called with all labels before a run.
struct Formula {
  static constexpr bool kKeepsZero = true;
  void look_at(const float*, int64_t) {}
};

struct Mse : Formula {
  explicit Mse(const kernel::Prepare&) {}
  float value(float x, float y) const { return (x - y) * (x - y); }
  float dx(float x, float y) const { return 2 * (x - y); }
  float dy(float x, float y) const { return 2 * (y - x); }
};

struct L1 : Formula {
  explicit L1(const kernel::Prepare&) {}
  float value(float x, float y) const { return std::abs(x - y); }
  float dx(float x, float y) const { return (x > y ? 1.0f : 0.0f) - (x < y ? 1.0f : 0.0f); }
  float dy(float x, float y) const { return dx(y, x); }
};

struct SmoothL1 : Formula {
  explicit SmoothL1(const kernel::Prepare& p) : delta(p.attr<float>("delta")) {}
  float value(float x, float y) const {
    const float d = std::abs(x - y);
    return d < delta ? 0.5f * d * d : delta * (d - 0.5f * delta);
  }
  float dx(float x, float y) const {
    const float d = x - y, low = d < -delta ? -delta : d;
    return low > delta ? delta : low;
  }
  float dy(float x, float y) const { return dx(y, x); }
  float delta;
};

struct LogLoss : Formula {
  static constexpr bool kKeepsZero = false;
  explicit LogLoss(const kernel::Prepare& p) : epsilon(p.attr<float>("epsilon")) {}
  float value(float x, float y) const {
    return -y * math::log(x + epsilon) - (1 - y) * math::log(1 - x + epsilon);
  }
  float dx(float x, float y) const { return (1 - y) / (1 - x + epsilon) - y / (x + epsilon); }
  float dy(float x, float) const { return math::log(1 - x + epsilon) - math::log(x + epsilon); }
  float epsilon;
};

struct KlDiv : Formula {
  explicit KlDiv(const kernel::Prepare&) {}
  float value(float x, float y) const { return y > 0 ? y * (math::log(y) - x) : 0.0f; }
  float dx(float, float y) const { return y > 0 ? -y : 0.0f; }
  float dy(float x, float y) const { return y > 0 ? math::log(y) + 1 - x : 0.0f; }
};

struct SigmoidCrossEntropy : Formula {
  static constexpr bool kKeepsZero = false;
  explicit SigmoidCrossEntropy(const kernel::Prepare& p)
      : ignored(static_cast<float>(p.attr<int64_t>("ignore_index"))),
        normalize(p.attr<bool>("normalize")) {}
  void look_at(const float* y, int64_t n) {
    if (!normalize) return;
    int64_t used = 0;
    for (int64_t i = 0; i < n; ++i) used += y[i] != ignored ? 1 : 0;
    factor = 1.0f / static_cast<float>(std::max<int64_t>(used, 1));
  }
  float value(float x, float y) const {
    const float tail = math::log1p(math::exp(-std::abs(x)));
    return y == ignored ? 0.0f : factor * ((x > 0 ? x : 0.0f) - x * y + tail);
  }
  float dx(float x, float y) const { return y == ignored ? 0.0f : factor * (math::sigmoid(x) - y); }
  float dy(float x, float y) const { return y == ignored ? 0.0f : -factor * x; }
  float ignored, factor = 1.0f;
  bool normalize;
};

void check_pair(const ir::Infer& c) {
  c.check(c.in("x").dtype == DType::kF32 && c.in("label") == c.in("x"),
          "x and label must be f32 in one shape, but ", c.show("x"), " and ", c.show("label"));
}

void infer(ir::Infer& c) {
  check_pair(c);
  for (const char* positive : {"delta", "epsilon"})
    if (c.op().attrs.contains(positive))
      c.check(c.attr<double>(positive) > 0, positive, " must be greater than 0, got ",
              c.attr<double>(positive));
  c.out("out") = c.in("x");
}

void grad(ir::Grad& g) {
  std::vector<ir::Dest> dests;
  for (const std::string slot : {"x", "label"})
    if (g.needs(slot)) dests.emplace_back("d" + slot, g.dx(slot));
  const ir::Results r =
      g.op(g.op().type() + "_grad",
           {{"x", g.in("x")}, {"label", g.in("label")}, {"dout", g.dout("out")}}, g.attrs(), dests);
  for (const std::string slot : {"x", "label"})
    if (g.needs(slot)) g.set(slot, r["d" + slot]);
}

void infer_grad(ir::Infer& c) {
  check_pair(c);
  c.check(c.in("dout") == c.in("x"), "dout must be like x, but ", c.show("x"), " and ",
          c.show("dout"));
  for (const char* slot : {"dx", "dlabel"})
    if (c.out_count(slot) > 0) c.out(slot) = c.in("x");
}

constexpr int64_t kGrain = 1 << 13;

template <class F>
Layout common_layout(const kernel::Prepare& p) {
  return F::kKeepsZero ? p.in("x").layout : Layout::plain();
}

template <class F>
class Forward final : public kernel::Kernel {
 public:
  explicit Forward(kernel::Prepare& p) : formula_(p) {
    const Layout layout = common_layout<F>(p);
    x_ = p.input("x", 0, layout);
    label_ = p.input("label", 0, layout);
    out_ = p.output("out", 0, layout);
    n_ = layout.stored(p.in("x").shape);
  }

  void run(const kernel::Run& r) override {
    const float *x = r.in<float>(x_), *y = r.in<float>(label_);
    float* out = r.out<float>(out_);
    F f = formula_;
    f.look_at(y, n_);
    parallel_for(n_, kGrain, [=](int64_t begin, int64_t end) {
      vectorized([=] {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) out[i] = f.value(x[i], y[i]);
      });
    });
  }

 private:
  F formula_;
  kernel::Slot x_, label_, out_;
  int64_t n_;
};

template <class F>
class Backward final : public kernel::Kernel {
 public:
  explicit Backward(kernel::Prepare& p) : formula_(p) {
    const Layout layout = common_layout<F>(p);
    x_ = p.input("x", 0, layout);
    label_ = p.input("label", 0, layout);
    dout_ = p.input("dout", 0, layout);
    dx_ = p.output("dx", 0, layout);
    dlabel_ = p.output("dlabel", 0, layout);
    n_ = layout.stored(p.in("x").shape);
  }

  void run(const kernel::Run& r) override {
    const float *x = r.in<float>(x_), *y = r.in<float>(label_), *dout = r.in<float>(dout_);
    float *dx = r.out<float>(dx_), *dy = r.out<float>(dlabel_);
    F f = formula_;
    f.look_at(y, n_);
    parallel_for(n_, kGrain, [=](int64_t begin, int64_t end) {
      vectorized([=] {
        if (dx) {
#pragma GCC ivdep
          for (int64_t i = begin; i < end; ++i) dx[i] = dout[i] * f.dx(x[i], y[i]);
        }
        if (dy) {
#pragma GCC ivdep
          for (int64_t i = begin; i < end; ++i) dy[i] = dout[i] * f.dy(x[i], y[i]);
        }
      });
    });
  }

 private:
  F formula_;
  kernel::Slot x_, label_, dout_, dx_, dlabel_;
  int64_t n_;
};

// Registers a loss and its gradient, which have the same attributes.
template <class F>
struct RegisterLoss {
  explicit RegisterLoss(const std::string& type, const ir::Attrs& attrs = {}) {
    ir::OpRegistrar forward(type), backward(type + "_grad");
    for (const auto& [name, value] : attrs) {
      forward.attr(name, value);
      backward.attr(name, value);
    }
    forward.input("x").input("label").output("out").infer(infer).grad(grad);
    forward.kernel<Forward<F>>().in_place("out", "x");
    backward.input("x").input("label").input("dout");
    backward.output("dx", ir::Arity::kOptional).output("dlabel", ir::Arity::kOptional);
    backward.infer(infer_grad).kernel<Backward<F>>();
    ir::RegisterOp(std::move(forward));
    ir::RegisterOp(std::move(backward));
  }
};

const RegisterLoss<Mse> mse_loss("mse_loss");
const RegisterLoss<L1> l1_loss("l1_loss");
const RegisterLoss<SmoothL1> smooth_l1_loss("smooth_l1_loss", {{"delta", 1.0}});
const RegisterLoss<LogLoss> log_loss("log_loss", {{"epsilon", 1e-4}});
const RegisterLoss<KlDiv> kldiv_loss("kldiv_loss");
const RegisterLoss<SigmoidCrossEntropy> sigmoid_cross_entropy("sigmoid_cross_entropy",
                                                              {{"ignore_index", -100},
                                                               {"normalize", false}});

}  // namespace
}  // namespace fleetx::ops
