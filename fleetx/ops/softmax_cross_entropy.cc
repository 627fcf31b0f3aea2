// softmax_cross_entropy: the loss of logits x over the classes on one axis, with s = softmax(x):
//   hard labels  out = -log s[label], 0 where the label is ignore_index;  dx = (s - onehot) * dout
//   soft labels  out = -sum(label * log s);                dx = (s * sum(label) - label) * dout
// Hard labels may be smoothed: the label counts 1 - smoothing, and smoothing is spread evenly over
// all n classes (Szegedy et al. 2016); dx = (s - (1 - smoothing) * onehot - smoothing / n) * dout.
// out has the shape of x with 1 on the axis; the output softmax is kept for backward. For shapes of
// labels see labels.h. The log is taken of the sum of exponentials, never of s, so a loss is not
// infinite.
#include <cmath>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/labels.h"
#include "fleetx/ops/lib/math.h"

namespace fleetx::ops {
namespace {

// Positions that are worked on together; 1 where the classes lie next to each other in memory.
constexpr int64_t kTile = 64;

void infer(ir::Infer& c) {
  ops::check_labels(c, "x");
  const auto smoothing = c.attr<double>("smoothing");
  c.check(smoothing >= 0 && smoothing < 1, "smoothing is ", smoothing, "; must be in [0, 1)");
  c.check(smoothing == 0 || !c.attr<bool>("soft_label"),
          "smoothing is for hard labels; soft ones are as they are given");
  c.out("out") = {DType::kF32, ops::one_per_position(c, "x")};
  c.out("softmax") = c.in("x");
}

void grad(ir::Grad& g) {
  ops::refuse_label_gradient(g);
  std::vector<ir::Var> parts;
  if (g.has_dout("out"))
    parts.push_back(
        g.op("softmax_cross_entropy_grad",
             {{"softmax", g.out("softmax")}, {"label", g.in("label")}, {"dout", g.dout("out")}},
             g.attrs(), {{"dx", g.dx("x")}}));
  if (g.has_dout("softmax"))
    parts.push_back(g.op("softmax_grad", {{"out", g.out("softmax")}, {"dout", g.dout("softmax")}},
                         {{"axis", g.attr<int64_t>("axis")}}, {{"dx", g.dx("x")}}));
  if (parts.size() == 1) return g.set("x", parts[0]);
  g.set("x", g.op("sum", {{"xs", parts}}, {}, {{"out", g.dx("x")}}));
}

ir::Cost cost(const ir::Infer& c) {
  return {.flops = 20.0 * static_cast<double>(c.in("x").shape.numel())};
}

// A run of `width` positions: class c of position k is at x[c * stride + k].
struct Tile {
  const float* x;
  float* softmax;
  const float* soft;  // labels in the layout of x, or null
  bool spread;        // every class is a label, too
  int64_t classes, stride, width;
};

// What the loss needs to know about each position; x may be overwritten afterwards.
struct Sums {
  float max[kTile];
  double exp[kTile];   // sum of e^(x - max)
  double dot[kTile];   // sum of label * (x - max); of x - max where the label is spread
  double mass[kTile];  // sum of label
};

// One position with contiguous classes: vectors run along the classes.
void softmax_row(const Tile t, Sums* sums) {
  const float* x = t.x;
  float max = x[0];
#pragma omp simd reduction(max : max)
  for (int64_t c = 0; c < t.classes; ++c) max = x[c] > max ? x[c] : max;
  double dot = 0, mass = 0;
  if (t.soft) {
#pragma omp simd reduction(+ : dot, mass)
    for (int64_t c = 0; c < t.classes; ++c) {
      dot += static_cast<double>(t.soft[c] * (x[c] - max));
      mass += static_cast<double>(t.soft[c]);
    }
  } else if (t.spread) {
#pragma omp simd reduction(+ : dot)
    for (int64_t c = 0; c < t.classes; ++c) dot += static_cast<double>(x[c] - max);
  }
  double total = 0;
  for (int64_t begin = 0; begin < t.classes; begin += 1024) {
    const int64_t end = std::min(begin + 1024, t.classes);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = begin; c < end; ++c) {
      const float e = math::exp(x[c] - max);
      t.softmax[c] = e;
      sum += e;
    }
    total += static_cast<double>(sum);
  }
  const auto inverse = static_cast<float>(1.0 / total);
  for (int64_t c = 0; c < t.classes; ++c) t.softmax[c] *= inverse;
  sums->max[0] = max;
  sums->exp[0] = total;
  sums->dot[0] = dot;
  sums->mass[0] = mass;
}

// Many positions next to each other: vectors run along them.
void softmax_tile(const Tile t, Sums* sums) {
  const int64_t n = t.width;
  for (int64_t k = 0; k < n; ++k) {
    sums->max[k] = t.x[k];
    sums->exp[k] = sums->dot[k] = sums->mass[k] = 0;
  }
  for (int64_t c = 1; c < t.classes; ++c) {
    const float* x = t.x + c * t.stride;
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) sums->max[k] = x[k] > sums->max[k] ? x[k] : sums->max[k];
  }
  for (int64_t c = 0; t.soft && c < t.classes; ++c) {
    const float *x = t.x + c * t.stride, *label = t.soft + c * t.stride;
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) {
      sums->dot[k] += static_cast<double>(label[k] * (x[k] - sums->max[k]));
      sums->mass[k] += static_cast<double>(label[k]);
    }
  }
  for (int64_t c = 0; t.spread && c < t.classes; ++c) {
    const float* x = t.x + c * t.stride;
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) sums->dot[k] += static_cast<double>(x[k] - sums->max[k]);
  }
  for (int64_t c = 0; c < t.classes; ++c) {
    const float* x = t.x + c * t.stride;
    float* out = t.softmax + c * t.stride;
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) {
      const float e = math::exp(x[k] - sums->max[k]);
      out[k] = e;
      sums->exp[k] += static_cast<double>(e);
    }
  }
  for (int64_t c = 0; c < t.classes; ++c) {
    float* out = t.softmax + c * t.stride;
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) out[k] *= static_cast<float>(1.0 / sums->exp[k]);
  }
}

// Calls body(outer, first inner position, width) for runs of positions, in parallel.
template <class Body>
void for_each_tile(const ops::ClassAxis& a, const Body& body) {
  const int64_t width = std::min(kTile, a.inner), per_outer = (a.inner + width - 1) / width;
  const int64_t grain = std::max<int64_t>(1, (1 << 13) / (a.classes * width));
  parallel_for(a.outer * per_outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % per_outer * width;
      body(i / per_outer, first, std::min(width, a.inner - first));
    }
  });
}

class Forward final : public kernel::Kernel {
 public:
  explicit Forward(kernel::Prepare& p)
      : axis_(ops::class_axis(p, "x")),
        labels_(p, "x"),
        smoothing_(p.attr<double>("smoothing")),
        x_(p.input("x")),
        out_(p.output("out")),
        softmax_(p.output("softmax")) {}

  void run(const kernel::Run& r) override {
    const float *x = r.in<float>(x_), *soft = labels_.soft(r);
    float *out = r.out<float>(out_), *softmax = r.out<float>(softmax_);
    const ops::Labels::View labels = labels_.checked(r);
    for_each_tile(axis_, [&](int64_t outer, int64_t first, int64_t width) {
      const int64_t base = outer * axis_.classes * axis_.inner + first;
      const int64_t position = outer * axis_.inner + first;
      // The logit of the label is read before softmax, which may be the memory of x.
      float picked[kTile];
      for (int64_t k = 0; !soft && k < width; ++k) {
        const int64_t label = labels[position + k];
        picked[k] = label == labels_.ignored() ? 0 : x[base + label * axis_.inner + k];
      }
      Sums sums;
      const Tile tile{.x = x + base,
                      .softmax = softmax + base,
                      .soft = soft ? soft + base : nullptr,
                      .spread = smoothing_ > 0,
                      .classes = axis_.classes,
                      .stride = axis_.inner,
                      .width = width};
      vectorized([tile, s = &sums] {
        if (tile.stride == 1)
          softmax_row(tile, s);
        else
          softmax_tile(tile, s);
      });
      for (int64_t k = 0; k < width; ++k) {
        const double log_sum = std::log(sums.exp[k]);
        double loss = 0;
        if (soft)
          loss = sums.mass[k] * log_sum - sums.dot[k];
        else if (labels[position + k] != labels_.ignored())
          loss =
              log_sum - (1 - smoothing_) * static_cast<double>(picked[k] - sums.max[k]) -
              (smoothing_ > 0 ? smoothing_ * sums.dot[k] / static_cast<double>(axis_.classes) : 0);
        out[position + k] = static_cast<float>(loss);
      }
    });
  }

 private:
  ops::ClassAxis axis_;
  ops::Labels labels_;
  double smoothing_;
  kernel::Slot x_, out_, softmax_;
};

void infer_grad(ir::Infer& c) { ops::infer_loss_grad(c, "softmax"); }

class Backward final : public kernel::Kernel {
 public:
  explicit Backward(kernel::Prepare& p)
      : axis_(ops::class_axis(p, "softmax")),
        labels_(p, "softmax"),
        smoothing_(p.attr<float>("smoothing")),
        softmax_(p.input("softmax")),
        dout_(p.input("dout")),
        dx_(p.output("dx")) {}

  void run(const kernel::Run& r) override {
    const float *softmax = r.in<float>(softmax_), *dout = r.in<float>(dout_),
                *soft = labels_.soft(r);
    float* dx = r.out<float>(dx_);
    const ops::Labels::View labels = labels_.checked(r);
    for_each_tile(axis_, [&](int64_t outer, int64_t first, int64_t width) {
      const int64_t base = outer * axis_.classes * axis_.inner + first;
      const int64_t position = outer * axis_.inner + first;
      float weight[kTile];  // of softmax, in each position
      for (int64_t k = 0; k < width; ++k) {
        weight[k] = dout[position + k];
        if (soft)
          weight[k] *= mass(soft + base + k);
        else if (labels[position + k] == labels_.ignored())
          weight[k] = 0;
      }
      vectorized([from = softmax + base, label = soft ? soft + base : nullptr, to = dx + base,
                  w = weight, d = dout + position, width, a = axis_,
                  share = smoothing_ / static_cast<float>(axis_.classes)] {
        if (a.inner == 1) return gradient(from, label, share, One{w[0]}, One{d[0]}, to, a.classes);
        for (int64_t c = 0; c < a.classes; ++c) {
          const int64_t at = c * a.inner;
          gradient(from + at, label ? label + at : nullptr, share, Many{w}, Many{d}, to + at,
                   width);
        }
      });
      for (int64_t k = 0; !soft && k < width; ++k) {
        const int64_t label = labels[position + k];
        if (label != labels_.ignored())
          dx[base + label * axis_.inner + k] -= (1 - smoothing_) * weight[k];
      }
    });
  }

 private:
  float mass(const float* label) const {
    double sum = 0;
    for (int64_t c = 0; c < axis_.classes; ++c) sum += static_cast<double>(label[c * axis_.inner]);
    return static_cast<float>(sum);
  }

  // A factor for all elements of a run, or one for each.
  struct One {
    float value;
    float operator[](int64_t) const { return value; }
  };
  struct Many {
    const float* values;
    float operator[](int64_t i) const { return values[i]; }
  };

  template <class Factor>
  static void gradient(const float* from, const float* label, float share, Factor w, Factor d,
                       float* to, int64_t n) {
    if (label) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i] = w[i] * from[i] - d[i] * label[i];
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i] = w[i] * (from[i] - share);
    }
  }

  ops::ClassAxis axis_;
  ops::Labels labels_;
  float smoothing_;
  kernel::Slot softmax_, dout_, dx_;
};

const ir::RegisterOp register_softmax_cross_entropy = ops::class_loss("softmax_cross_entropy")
                                                          .input("x")
                                                          .input("label")
                                                          .output("out")
                                                          .output("softmax")
                                                          .attr("smoothing", 0.0)
                                                          .infer(infer)
                                                          .grad(grad)
                                                          .cost(cost)
                                                          .kernel<Forward>()
                                                          .in_place("softmax", "x");

const ir::RegisterOp register_softmax_cross_entropy_grad =
    ops::class_loss("softmax_cross_entropy_grad")
        .input("softmax")
        .input("label")
        .input("dout")
        .output("dx")
        .attr("smoothing", 0.0)
        .infer(infer_grad)
        .kernel<Backward>()
        .in_place("dx", "softmax");

}  // namespace
}  // namespace fleetx::ops
