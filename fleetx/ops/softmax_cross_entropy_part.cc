// softmax_cross_entropy_part: softmax_cross_entropy with hard labels, of logits whose classes the
// ranks of a group divide: rank r has the classes from r * C on, in x [..., C].
//   out = -log s[label], 0 where the label is ignore_index, the same on all ranks; s is the softmax
//   over the classes of all ranks, of which `softmax` is the part of this rank.
//   dx = (s - onehot) * dout for the classes of this rank.
// Two numbers per position travel, the largest logit before them; never the logits.
#include <algorithm>
#include <cmath>

#include "fleetx/base/threads.h"
#include "fleetx/kernel/group.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/ranks.h"
#include "fleetx/ops/lib/rows.h"

namespace fleetx::ops {
namespace {

using comm::Call;
using comm::ReduceOp;

void check_label(const ir::Infer& c, std::string_view classes) {
  const ir::TensorType &x = c.in(classes), &label = c.in("label");
  check_ids(c, "label");
  c.check(x.dtype == f32 && x.shape.rank() >= 2, c.show(classes), "; must be f32 [..., classes]");
  c.check(label.shape.rank() == x.shape.rank() && label.shape.back() == 1, c.show("label"), ", ",
          c.show(classes), "; there must be one label per position, [..., 1]");
  check_ranks(c);
}

void infer(ir::Infer& c) {
  check_label(c, "x");
  ir::TensorType out = c.in("x");
  out.shape[out.shape.rank() - 1] = 1;
  c.out("out") = out;
  c.out("softmax") = c.in("x");
}

void infer_grad(ir::Infer& c) {
  check_label(c, "softmax");
  c.out("dx") = c.in("softmax");
}

void grad(ir::Grad& g) {
  g.set("x",
        g.op("softmax_cross_entropy_part_grad",
             {{"softmax", g.out("softmax")}, {"label", g.in("label")}, {"dout", g.dout("out")}},
             g.attrs(), {{"dx", g.dx("x")}}));
}

ir::Cost cost(const ir::Infer& c) {
  // In f32: the largest logits, then two sums in f64.
  return {.flops = 20.0 * static_cast<double>(c.in("x").shape.numel()),
          .communication = {ir::CommKind::kAllReduce, c.attr<std::string>("group"),
                            5 * ir::bytes_of(c.out("out"))}};
}

class PartKernel : public kernel::Kernel {
 public:
  PartKernel(kernel::Prepare& p, std::string_view classes)
      : group_(group_of_ranks(p)),
        classes_(p.in(classes).shape.back()),
        first_(classes_ * group_.rank()),
        all_(classes_ * group_.size()),
        labels_(p, "label", all_, "classes"),
        ignored_(p.attr<int64_t>("ignore_index")) {}
  void bind(const comm::Groups& groups) override { group_.bind(groups); }
  std::string_view implementation() const override { return group_.backend(); }

 protected:
  kernel::Group group_;
  int64_t classes_, first_, all_;  // of this rank: how many, from which; of all
  IdInput labels_;
  int64_t ignored_;
};

class Loss final : public PartKernel {
 public:
  explicit Loss(kernel::Prepare& p)
      : PartKernel(p, "x"),
        x_(p.input("x")),
        out_(p.output("out")),
        softmax_(p.output("softmax")),
        max_(p.scratch(static_cast<size_t>(labels_.count()) * sizeof(float))),
        sums_(p.scratch(static_cast<size_t>(labels_.count()) * 2 * sizeof(double))) {}

  void run(const kernel::Run& r) override {
    const int64_t n = labels_.count(), classes = classes_, first = first_;
    const Ids label = labels_.unchecked(r);
    for (int64_t i = 0; i < n; ++i)
      check_arg(label(i) == ignored_ || (label(i) >= 0 && label(i) < all_), group_.op(), "label ",
                i, " is ", label(i), "; must be in [0, ", all_, ") or ignore_index, ", ignored_);
    const float* x = r.in<float>(x_);
    float *max = r.out<float>(max_), *softmax = r.out<float>(softmax_), *out = r.out<float>(out_);
    auto* sums = r.out<double>(sums_);  // of exponentials, then the logits of labels
    const int64_t grain = (1 << 14) / (classes + 1) + 1;
    parallel_for(n, grain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        max[i] = *std::max_element(x + i * classes, x + (i + 1) * classes);
    });
    if (group_.size() > 1) group_->run(Call::all_reduce(max, n, f32, ReduceOp::kMax));
    parallel_for(n, grain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* row = x + i * classes;
        double sum = 0;
        for (int64_t c = 0; c < classes; ++c) {
          const float e = std::exp(row[c] - max[i]);
          softmax[i * classes + c] = e;
          sum += static_cast<double>(e);
        }
        const int64_t own = label(i) - first;
        sums[i] = sum;
        sums[n + i] = own >= 0 && own < classes ? static_cast<double>(row[own] - max[i]) : 0.0;
      }
    });
    if (group_.size() > 1) group_->run(Call::all_reduce(sums, 2 * n, f64, ReduceOp::kSum));
    const int64_t ignored = ignored_;
    parallel_for(n, grain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto inverse = static_cast<float>(1.0 / sums[i]);
        for (int64_t c = 0; c < classes; ++c) softmax[i * classes + c] *= inverse;
        out[i] = label(i) == ignored ? 0.0f : static_cast<float>(std::log(sums[i]) - sums[n + i]);
      }
    });
  }

 private:
  kernel::Slot x_, out_, softmax_, max_, sums_;
};

class LossGrad final : public PartKernel {
 public:
  explicit LossGrad(kernel::Prepare& p)
      : PartKernel(p, "softmax"),
        softmax_(p.input("softmax")),
        dout_(p.input("dout")),
        dx_(p.output("dx")) {}

  void run(const kernel::Run& r) override {
    const int64_t classes = classes_, first = first_, ignored = ignored_;
    const Ids label = labels_.unchecked(r);
    const float *softmax = r.in<float>(softmax_), *dout = r.in<float>(dout_);
    float* dx = r.out<float>(dx_);
    parallel_for(labels_.count(), (1 << 14) / (classes + 1) + 1, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float factor = label(i) == ignored ? 0.0f : dout[i];
        for (int64_t c = 0; c < classes; ++c)
          dx[i * classes + c] = softmax[i * classes + c] * factor;
        const int64_t own = label(i) - first;
        if (own >= 0 && own < classes) dx[i * classes + own] -= factor;
      }
    });
  }

 private:
  kernel::Slot softmax_, dout_, dx_;
};

FLEETX_OP(softmax_cross_entropy_part)
    .input("x")
    .input("label")
    .output("out")
    .output("softmax")
    .required_attr("group", ir::AttrType::kString)
    .required_attr("ranks", ir::AttrType::kInt)
    .attr("ignore_index", -100)
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel<Loss>()
    .collective()
    .uniform("out");

FLEETX_OP(softmax_cross_entropy_part_grad)
    .input("softmax")
    .input("label")
    .input("dout")
    .output("dx")
    .required_attr("group", ir::AttrType::kString)
    .required_attr("ranks", ir::AttrType::kInt)
    .attr("ignore_index", -100)
    .infer(infer_grad)
    .kernel<LossGrad>()
    .collective();

}  // namespace
}  // namespace fleetx::ops
