// The borders of a part of the network that the ranks of a group compute together, each its own
// share of it, while all of them compute the same before and behind it (Shoeybi et al., 2019):
//
//   op               out of rank r                           gradient
//   group_identity   x                                       all_reduce (sum)
//   group_sum        the sum of the x of all ranks           dout
//   group_part       the r-th part of x along `axis`         group_concat
//   group_concat     the x of all ranks along `axis`         group_part
//
// A gradient is that of the one loss that all ranks compute: in contrast to the collectives of
// collective.cc, whose losses add up. group_identity and group_part begin such a part of the
// network with an x that is the same on all ranks; group_sum and group_concat end it. All but
// group_identity are for exactly `ranks` ranks, it says so for the errors of others.
//
// Ranks are combined in their order, halves in f32: all ranks get the same bits.
#include <cstring>

#include "fleetx/kernel/group.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/copy_kernel.h"
#include "fleetx/ops/lib/ranks.h"

namespace fleetx::ops {
namespace {

using comm::Call;

// ---- types ----

void check_attrs(const ir::Infer& c) {
  c.check(!c.attr<std::string>("group").empty(), "group is \"\"; must name a group of ranks");
  check_ranks(c);
  c.check(c.in("x").kind == ir::VarKind::kDense, c.show("x"), "; must be dense");
}

void infer_same(ir::Infer& c) {
  check_attrs(c);
  c.check(is_float(c.in("x").dtype), c.show("x"), "; must be floating point");
  c.out("out") = c.in("x");
}

void infer_part(ir::Infer& c) {
  check_attrs(c);
  ir::TensorType out = c.in("x");
  const int axis = checked_axis(c, "x");
  const auto ranks = c.attr<int64_t>("ranks");
  c.check(c.by_example() || out.shape[axis] % ranks == 0, c.show("x"), "; dimension ", axis,
          " must be a multiple of ranks, which is ", ranks);
  out.shape[axis] /= ranks;
  c.out("out") = out;
}

void infer_concat(ir::Infer& c) {
  check_attrs(c);
  ir::TensorType out = c.in("x");
  out.shape[checked_axis(c, "x")] *= c.attr<int64_t>("ranks");
  c.out("out") = out;
}

ir::Cost cost_sum(const ir::Infer& c) {
  return {.communication = ir::communication_of(c, ir::CommKind::kAllReduce, "x")};
}
ir::Cost cost_concat(const ir::Infer& c) {
  return {.communication = ir::communication_of(c, ir::CommKind::kAllGather, "x")};
}

// ---- gradients ----

void grad_identity(ir::Grad& g) {
  g.set("x", g.op("all_reduce", {{"xs", std::vector{g.dout("out")}}},
                  {{"group", g.attr<std::string>("group")}, {"op", "sum"}},
                  {{"out", ir::Names{g.dx("x")}}}));
}
void grad_sum(ir::Grad& g) {
  g.set("x", g.op("assign", {{"x", g.dout("out")}}, {}, {{"out", g.dx("x")}}));
}
void grad_part(ir::Grad& g) {
  g.set("x", g.op("group_concat", {{"x", g.dout("out")}}, g.attrs(), {{"out", g.dx("x")}}));
}
void grad_concat(ir::Grad& g) {
  g.set("x", g.op("group_part", {{"x", g.dout("out")}}, g.attrs(), {{"out", g.dx("x")}}));
}

// ---- kernels ----

class GroupKernel : public kernel::Kernel {
 public:
  explicit GroupKernel(kernel::Prepare& p)
      : group_(group_of_ranks(p)),
        x_(p.input("x")),
        out_(p.output("out")),
        dtype_(p.in("x").dtype),
        elements_(p.in("x").numel()),
        bytes_(static_cast<size_t>(elements_) * size_of(dtype_)) {}
  void bind(const comm::Groups& groups) override { group_.bind(groups); }
  std::string_view implementation() const override { return group_.backend(); }

 protected:
  kernel::Group group_;
  kernel::Slot x_, out_;
  DType dtype_;
  int64_t elements_;  // of x
  size_t bytes_;      // of x
};

class Identity final : public GroupKernel {
 public:
  using GroupKernel::GroupKernel;
  void run(const kernel::Run& r) override {
    if (r.raw(out_) != r.raw(x_)) std::memcpy(r.raw(out_), r.raw(x_), bytes_);
  }
};

class Sum final : public GroupKernel {
 public:
  using GroupKernel::GroupKernel;
  void run(const kernel::Run& r) override {
    if (r.raw(out_) != r.raw(x_)) std::memcpy(r.raw(out_), r.raw(x_), bytes_);
    if (group_.size() > 1)
      group_->run(Call::all_reduce(r.raw(out_), elements_, dtype_, comm::ReduceOp::kSum));
  }
};

// Rows of x or out: dimensions before the axis count them.
int64_t rows_of(const kernel::Prepare& p) {
  const Shape& shape = p.in("x").shape;
  return shape.numel(0, normalize_axis(p.attr<int64_t>("axis"), shape.rank()));
}

class Part final : public GroupKernel {
 public:
  explicit Part(kernel::Prepare& p) : GroupKernel(p), rows_(rows_of(p)) {}
  void run(const kernel::Run& r) override {
    if (bytes_ == 0) return;
    const size_t row = bytes_ / static_cast<size_t>(rows_);
    const size_t part = row / static_cast<size_t>(group_.size());
    const char* x = r.in<char>(x_) + static_cast<size_t>(group_.rank()) * part;
    char* out = r.out<char>(out_);
    for (int64_t i = 0; i < rows_; ++i, x += row, out += part) std::memcpy(out, x, part);
  }

 private:
  int64_t rows_;
};

class Concat final : public GroupKernel {
 public:
  explicit Concat(kernel::Prepare& p) : GroupKernel(p), rows_(rows_of(p)) {
    if (rows_ > 1) gathered_ = p.scratch(bytes_ * static_cast<size_t>(group_.size()));
  }
  void run(const kernel::Run& r) override {
    if (bytes_ == 0) return;
    const auto ranks = static_cast<size_t>(group_.size());
    char* all = gathered_ ? r.out<char>(gathered_) : r.out<char>(out_);
    char* own = all + static_cast<size_t>(group_.rank()) * bytes_;
    std::memcpy(own, r.raw(x_), bytes_);
    if (ranks > 1) group_->run(Call::all_gather(own, all, static_cast<int64_t>(bytes_), u8));
    if (!gathered_) return;
    const size_t part = bytes_ / static_cast<size_t>(rows_);
    char* out = r.out<char>(out_);
    for (size_t i = 0; i < static_cast<size_t>(rows_); ++i)
      for (size_t rank = 0; rank < ranks; ++rank, out += part)
        std::memcpy(out, all + rank * bytes_ + i * part, part);
  }

 private:
  int64_t rows_;
  kernel::Slot gathered_;  // the x of all ranks, one after the other
};

FLEETX_OP(group_identity)
    .input("x")
    .output("out")
    .required_attr("group", ir::AttrType::kString)
    .required_attr("ranks", ir::AttrType::kInt)
    .infer(infer_same)
    .grad(grad_identity)
    .kernel<Identity>()
    .view("out", "x");

FLEETX_OP(group_sum)
    .input("x")
    .output("out")
    .required_attr("group", ir::AttrType::kString)
    .required_attr("ranks", ir::AttrType::kInt)
    .infer(infer_same)
    .grad(grad_sum)
    .cost(cost_sum)
    .kernel<Sum>()
    .in_place("out", "x")
    .collective()
    .uniform("out");

FLEETX_OP(group_part)
    .input("x")
    .output("out")
    .required_attr("group", ir::AttrType::kString)
    .required_attr("ranks", ir::AttrType::kInt)
    .attr("axis", -1)
    .infer(infer_part)
    .grad(grad_part)
    .kernel<Part>()
    .collective();

FLEETX_OP(group_concat)
    .input("x")
    .output("out")
    .required_attr("group", ir::AttrType::kString)
    .required_attr("ranks", ir::AttrType::kInt)
    .attr("axis", -1)
    .infer(infer_concat)
    .grad(grad_concat)
    .cost(cost_concat)
    .kernel<Concat>()
    .collective()
    .uniform("out");

}  // namespace
}  // namespace fleetx::ops
