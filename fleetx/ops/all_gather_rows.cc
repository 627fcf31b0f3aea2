// all_gather_rows: out = the sparse rows of all `ranks` ranks of a group, in rank order, divided by
// their number: the average of sparse gradients (equal ids add up by definition). Only the rows
// that are there travel, as many from each rank as the one with the most has.
#include <algorithm>
#include <cstring>

#include "fleetx/kernel/group.h"
#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  ir::TensorType out = c.in("x");
  c.check(out.kind == ir::VarKind::kSparseRows && out.dtype == f32, c.show("x"),
          "; expected sparse rows of f32");
  const auto ranks = c.attr<int64_t>("ranks");
  c.check(ranks >= 1, "ranks is ", ranks, "; must be at least 1");
  out.rows = out.rows < 0 ? -1 : out.rows * ranks;
  c.out("out") = out;
}

// At most: only the rows that are there travel.
ir::Cost cost(const ir::Infer& c) {
  return {.communication = ir::communication_of(c, ir::CommKind::kAllGather, "x")};
}

class AllGatherRows final : public kernel::Kernel {
 public:
  explicit AllGatherRows(kernel::Prepare& p)
      : group_(p.group(p.attr<std::string>("group"))),
        ranks_(p.attr<int64_t>("ranks")),
        rows_(p.in("x").rows),
        width_(p.in("x").shape.numel(1, p.in("x").shape.rank())),
        x_(p.input("x")),
        out_(p.output("out")),
        sizes_(p.scratch(static_cast<size_t>(ranks_ + 1) * sizeof(Size))),
        ids_(p.scratch(static_cast<size_t>(ranks_ * rows_) * 8)),
        values_(p.scratch(static_cast<size_t>(ranks_ * rows_ * width_) * 4)) {
    check_arg(group_.size() == ranks_, ir::describe(p.op()), "the program is for ", ranks_,
              " workers, the group has ", group_.size());
  }

  void bind(const comm::Groups& groups) override { group_.bind(groups); }
  void run(const kernel::Run& r) override {
    const kernel::SparseRows x = r.rows(x_, rows_), out = r.rows(out_, ranks_ * rows_);
    auto* own = r.out<Size>(sizes_);
    auto* all = own + 1;
    auto* ids = r.out<int64_t>(ids_);
    auto* values = r.out<float>(values_);
    *own = {*x.count, rows_};
    group_->all_gather(own, all, 2, i64);
    int64_t most = 0;
    for (int64_t rank = 0; rank < ranks_; ++rank) {
      most = std::max(most, all[rank].count);
      check_arg(all[rank].room == rows_, "worker ", rank, " has a batch with ", all[rank].room,
                " ids, worker ", group_.rank(), " one with ", rows_,
                "; all workers must feed batches of one size");
    }
    group_->all_gather(x.ids, ids, most, i64);
    group_->all_gather(x.values, values, most * width_, f32);

    const float factor = 1.0f / static_cast<float>(ranks_);
    int64_t end = 0;
    for (int64_t rank = 0; rank < ranks_; ++rank) {
      const int64_t count = all[rank].count;
      std::copy_n(ids + rank * most, count, out.ids + end);
      std::transform(values + rank * most * width_, values + (rank * most + count) * width_,
                     out.values + end * width_, [=](float v) { return v * factor; });
      end += count;
    }
    *out.count = end;
  }
  std::string_view implementation() const override { return group_.backend(); }

 private:
  struct Size {
    int64_t count, room;
  };

  kernel::Group group_;
  int64_t ranks_, rows_, width_;
  kernel::Slot x_, out_, sizes_, ids_, values_;
};

FLEETX_OP(all_gather_rows)
    .input("x")
    .output("out")
    .required_attr("group", ir::AttrType::kString)
    .required_attr("ranks", ir::AttrType::kInt)
    .infer(infer)
    .cost(cost)
    .kernel<AllGatherRows>()
    .collective()
    .uniform("out");

}  // namespace
}  // namespace fleetx::ops
