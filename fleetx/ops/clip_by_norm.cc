// clip_by_norm: out = x * min(1, max_norm / |x|), with the norm of all of x. x is dense, in any
// layout, or sparse: then the norm is that of the rows with equal ids added up, and out has the
// rows of x. global_norm_scale: out = min(1, max_norm / sqrt(x)), for x the squared norm of all
// gradients (f32[1]): the factor that optimizers take as `scale`.
#include <algorithm>
#include <cmath>
#include <optional>

#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/blocks.h"
#include "fleetx/ops/lib/sparse_rows.h"

namespace fleetx::ops {
namespace {

void check_max_norm(const ir::Infer& c) {
  c.check(c.in("x").dtype == DType::kF32, "x must be f32, but ", c.show("x"));
  c.check(c.attr<double>("max_norm") > 0, "max_norm must be greater than 0, got ",
          c.attr<double>("max_norm"));
}

void infer_clip(ir::Infer& c) {
  check_max_norm(c);
  c.out("out") = c.in("x");
}

void infer_scale(ir::Infer& c) {
  check_max_norm(c);
  c.check(c.in("x").shape.numel() == 1, "x must be f32[1], but ", c.show("x"));
  c.out("out") = c.in("x");
}

float clip_factor(double squared_norm, double max_norm) {
  return static_cast<float>(std::min(1.0, max_norm / std::sqrt(squared_norm)));
}

class Clip final : public kernel::Kernel {
 public:
  explicit Clip(kernel::Prepare& p)
      : max_norm_(p.attr<double>("max_norm")),
        capacity_(p.in("x").rows),
        x_(p.input_as_is("x")),
        out_(p.output("out", 0, p.in("x").layout)) {
    const Shape& shape = p.in("x").shape;
    if (p.in("x").kind == ir::VarKind::kSparseRows) {
      width_ = shape.numel(1, shape.rank());
      merge_.emplace(p, capacity_, width_);
      squares_.resize(static_cast<size_t>(num_threads()));
    } else {
      blocks_ = ops::Blocks({p.in("x").stored()});
      squares_.resize(blocks_.size());
    }
  }

  void run(const kernel::Run& r) override {
    if (merge_) return clip_rows(r);
    const float* x = r.in<float>(x_);
    float* out = r.out<float>(out_);
    blocks_.for_each([&](size_t index, const ops::Block& b) {
      squares_[index] = ops::sum_of_squares(x + b.begin, b.end - b.begin);
    });
    const float factor = clip_factor(sum(), max_norm_);
    blocks_.for_each([&](size_t, const ops::Block& b) {
      scale(x + b.begin, factor, out + b.begin, b.end - b.begin);
    });
  }

 private:
  void clip_rows(const kernel::Run& r) {
    const kernel::SparseRows x = r.rows(x_, capacity_), out = r.rows(out_, capacity_);
    std::fill(squares_.begin(), squares_.end(), 0.0);
    merge_->for_each(r, x, [&](int part, int64_t, const float* row) {
      squares_[static_cast<size_t>(part)] += ops::sum_of_squares(row, width_);
    });
    *out.count = *x.count;
    std::copy_n(x.ids, *x.count, out.ids);
    scale(x.values, clip_factor(sum(), max_norm_), out.values, *x.count * width_);
  }

  double sum() const {
    double sum = 0;
    for (const double s : squares_) sum += s;
    return sum;
  }

  static void scale(const float* x, float factor, float* out, int64_t n) {
    vectorized([=] {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = factor * x[i];
    });
  }

  double max_norm_;
  int64_t capacity_, width_ = 0;
  kernel::Slot x_, out_;
  ops::Blocks blocks_;
  std::optional<MergeRows> merge_;  // where x is sparse
  std::vector<double> squares_;
};

class Scale final : public kernel::Kernel {
 public:
  explicit Scale(kernel::Prepare& p)
      : max_norm_(p.attr<double>("max_norm")), x_(p.input("x")), out_(p.output("out")) {}
  void run(const kernel::Run& r) override {
    *r.out<float>(out_) = clip_factor(static_cast<double>(*r.in<float>(x_)), max_norm_);
  }

 private:
  double max_norm_;
  kernel::Slot x_, out_;
};

FLEETX_OP(clip_by_norm)
    .input("x")
    .output("out")
    .required_attr("max_norm", ir::AttrType::kFloat)
    .infer(infer_clip)
    .kernel<Clip>()
    .in_place("out", "x");

FLEETX_OP(global_norm_scale)
    .input("x")
    .output("out")
    .required_attr("max_norm", ir::AttrType::kFloat)
    .infer(infer_scale)
    .kernel<Scale>()
    .in_place("out", "x");

}  // namespace
}  // namespace fleetx::ops
