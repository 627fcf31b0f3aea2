// clip_rows: clip for sparse gradients: rows of equal ids are added up, then every element is held
// in [min, max]. Untouched rows are zero and must stay so, hence min <= 0 <= max.
#include <algorithm>

#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/sparse_rows.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  c.check(c.in("x").kind == ir::VarKind::kSparseRows, "x must be sparse, but ", c.show("x"));
  c.check(c.attr<double>("min") <= 0 && c.attr<double>("max") >= 0,
          "0 must lie between min and max, got ", c.attr<double>("min"), " and ",
          c.attr<double>("max"));
  c.out("out") = c.in("x");
}

class ClipRows final : public kernel::Kernel {
 public:
  explicit ClipRows(kernel::Prepare& p)
      : min_(p.attr<float>("min")),
        max_(p.attr<float>("max")),
        capacity_(p.in("x").rows),
        width_(p.in("x").shape.numel(1, p.in("x").shape.rank())),
        x_(p.input("x")),
        out_(p.output("out")),
        entries_(p.scratch(2 * static_cast<size_t>(capacity_) * sizeof(MergeRows::Entry))) {}

  void run(const kernel::Run& r) override {
    const kernel::SparseRows x = r.rows(x_, capacity_), out = r.rows(out_, capacity_);
    const int64_t n = *x.count;
    const MergeRows::Entry* entries = MergeRows::sort(x.ids, n, r.out<MergeRows::Entry>(entries_));
    int64_t rows = 0;
    for (int64_t i = 0; i < n; ++rows) {
      float* to = out.values + rows * width_;
      std::fill_n(to, width_, 0.0f);
      out.ids[rows] = entries[i].id;
      for (; i < n && entries[i].id == out.ids[rows]; ++i) {
        const float* from = x.values + entries[i].position * width_;
        for (int64_t k = 0; k < width_; ++k) to[k] += from[k];
      }
      for (int64_t k = 0; k < width_; ++k) to[k] = std::clamp(to[k], min_, max_);
    }
    *out.count = rows;
  }

 private:
  float min_, max_;
  int64_t capacity_, width_;
  kernel::Slot x_, out_, entries_;
};

FLEETX_OP(clip_rows)
    .input("x")
    .output("out")
    .required_attr("min", ir::AttrType::kFloat)
    .required_attr("max", ir::AttrType::kFloat)
    .infer(infer)
    .kernel<ClipRows>();

}  // namespace
}  // namespace fleetx::ops
