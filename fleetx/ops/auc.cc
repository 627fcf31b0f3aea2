// auc: area under the ROC curve of all examples seen so far, from histograms of the predictions.
//   x      f32 [N], [N,1], or [N,2] where column 1 is the probability of the positive class
//   label  i64 or i32 [N] or [N,1], positive where not 0
//   stat_pos, stat_neg  i64 state of num_thresholds + 1 bins, updated in place: bin
//          floor(x * num_thresholds) of an example is raised by one
//   out    f32[1]: trapezoids over the bins from the highest down; 0 while one of the classes is
//          missing
// With slide_steps = s > 0 only the last s runs count: the states then hold one histogram for each
// of s runs, their sum, and the number of runs: (s + 1) * (num_thresholds + 1) + 1 numbers.
#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

int64_t state_size(int64_t thresholds, int64_t slide_steps) {
  return slide_steps == 0 ? thresholds + 1 : (slide_steps + 1) * (thresholds + 1) + 1;
}

void infer(ir::Infer& c) {
  const Shape &x = c.in("x").shape, &label = c.in("label").shape;
  c.check(c.in("x").dtype == DType::kF32, "x must be f32, but ", c.show("x"));
  c.check(x.rank() == 1 || (x.rank() == 2 && (x[1] == 1 || x[1] == 2)),
          "x must be [N], [N,1] or [N,2], but ", c.show("x"));
  c.check(c.in("label").dtype == DType::kI64 || c.in("label").dtype == DType::kI32,
          "label must be i64 or i32, but ", c.show("label"));
  c.check(label.rank() >= 1 && label[0] == x[0] && label.numel() == x[0],
          "there must be one label for each x, but ", c.show("x"), " and ", c.show("label"));
  c.check(c.attr<std::string>("curve") == "ROC", "curve must be \"ROC\", got \"",
          c.attr<std::string>("curve"), "\"");
  const int64_t thresholds = c.attr<int64_t>("num_thresholds"), s = c.attr<int64_t>("slide_steps");
  c.check(thresholds > 0, "num_thresholds must be greater than 0, got ", thresholds);
  c.check(s >= 0, "slide_steps must not be negative, got ", s);
  for (const std::string name : {"stat_pos", "stat_neg"}) {
    const ir::TensorType& stat = c.in(name);
    c.check(stat.dtype == DType::kI64 && stat.shape == Shape{state_size(thresholds, s)}, name,
            " must be i64[", state_size(thresholds, s), "], but ", c.show(name));
    c.check(c.op().in(name) == c.op().out(name + "_out"), name,
            "_out must be the same variable as ", name, ": it is updated in place");
    c.out(name + "_out") = stat;
  }
  c.out("out") = {DType::kF32, {1}};
}

double area(const int64_t* pos, const int64_t* neg, int64_t bins) {
  double sum = 0, all_pos = 0, all_neg = 0;
  for (int64_t i = bins - 1; i >= 0; --i) {
    const auto p = static_cast<double>(pos[i]), n = static_cast<double>(neg[i]);
    sum += n * (all_pos + 0.5 * p);
    all_pos += p;
    all_neg += n;
  }
  return all_pos > 0 && all_neg > 0 ? sum / all_pos / all_neg : 0.0;
}

class Auc final : public kernel::Kernel {
 public:
  explicit Auc(kernel::Prepare& p)
      : n_(p.in("x").shape[0]),
        columns_(p.in("x").shape.numel(1, p.in("x").shape.rank())),
        thresholds_(p.attr<int64_t>("num_thresholds")),
        slide_steps_(p.attr<int64_t>("slide_steps")),
        wide_(p.in("label").dtype == DType::kI64),
        where_(ir::describe(p.op())),
        x_(p.input("x")),
        label_(p.input("label")),
        out_(p.output("out")) {
    p.input("stat_pos");
    p.input("stat_neg");
    pos_ = p.output("stat_pos_out");
    neg_ = p.output("stat_neg_out");
  }

  void run(const kernel::Run& r) override {
    const float* x = r.in<float>(x_) + (columns_ - 1);
    for (int64_t i = 0; i < n_; ++i)
      check_arg(x[i * columns_] >= 0 && x[i * columns_] <= 1, where_, "prediction ",
                x[i * columns_], " at position ", i, " is not in [0, 1]");
    int64_t *pos = r.out<int64_t>(pos_), *neg = r.out<int64_t>(neg_);
    const int64_t bins = thresholds_ + 1;
    if (slide_steps_ > 0) {
      forget_oldest(pos);
      forget_oldest(neg);
    }
    const int64_t now = slide_steps_ > 0 ? newest(pos) : 0;
    for (int64_t i = 0; i < n_; ++i) {
      const auto bin = static_cast<int64_t>(static_cast<double>(x[i * columns_]) *
                                            static_cast<double>(thresholds_));
      int64_t* stat = positive(r, i) ? pos : neg;
      ++stat[now + bin];
      if (slide_steps_ > 0) ++stat[slide_steps_ * bins + bin];
    }
    const int64_t sum = slide_steps_ * bins;
    *r.out<float>(out_) = static_cast<float>(area(pos + sum, neg + sum, bins));
  }

 private:
  bool positive(const kernel::Run& r, int64_t i) const {
    return wide_ ? r.in<int64_t>(label_)[i] != 0 : r.in<int32_t>(label_)[i] != 0;
  }
  // Where the histogram of this run begins, once it is counted.
  int64_t newest(const int64_t* stat) const {
    const int64_t runs = stat[state_size(thresholds_, slide_steps_) - 1];
    return (runs - 1) % slide_steps_ * (thresholds_ + 1);
  }
  // Counts this run and clears its place, which the oldest one had.
  void forget_oldest(int64_t* stat) const {
    const int64_t bins = thresholds_ + 1;
    ++stat[state_size(thresholds_, slide_steps_) - 1];
    int64_t *old = stat + newest(stat), *sum = stat + slide_steps_ * bins;
    for (int64_t i = 0; i < bins; ++i) {
      sum[i] -= old[i];
      old[i] = 0;
    }
  }

  int64_t n_, columns_, thresholds_, slide_steps_;
  bool wide_;
  std::string where_;
  kernel::Slot x_, label_, out_, pos_, neg_;
};

FLEETX_OP(auc)
    .input("x")
    .input("label")
    .input("stat_pos")
    .input("stat_neg")
    .output("out")
    .output("stat_pos_out")
    .output("stat_neg_out")
    .attr("num_thresholds", 4095)
    .attr("curve", "ROC")
    .attr("slide_steps", 0)
    .infer(infer)
    .kernel<Auc>();

}  // namespace
}  // namespace fleetx::ops
