// all_gather_rows: out = the sparse rows of all `ranks` ranks of a group, in rank order, divided by
// their number: the average of sparse gradients (equal ids add up by definition). Only the rows
// that are there travel, as many from each rank as the one with the most has.
//
// As for other collectives (collective.cc) there are two forms beside the computation:
//
//   out, ticket = all_gather_rows_start(x)
//   out = all_gather_rows_wait(out, ticket, held)    held: x, which is read until now
#include <algorithm>
#include <array>

#include "fleetx/kernel/group.h"
#include "fleetx/kernel/op.h"
#include "fleetx/kernel/ticket.h"
#include "fleetx/ops/lib/ranks.h"

namespace fleetx::ops {
namespace {

using comm::Call;

// What the ranks tell each other before the rows travel: combined by max, so that each learns of
// all. How many rows the rank with the most has; the room for rows, and the same negated, which
// differ if not all ranks have the same; then how many rows each rank has.
struct Sizes {
  static constexpr int64_t kMost = 0, kRoom = 1, kNegatedRoom = 2, kCounts = 3;
  static int64_t words(int64_t ranks) { return kCounts + ranks; }
  // None travel where ranks would write into memory that has room for less.
  static int64_t rows(const int64_t* sizes) {
    return sizes[kRoom] == -sizes[kNegatedRoom] ? sizes[kMost] : 0;
  }
};

class RowsKernel : public kernel::Kernel {
 public:
  RowsKernel(kernel::Prepare& p, int64_t rows)
      : group_(p.group(p.attr<std::string>("group"))),
        ranks_(p.attr<int64_t>("ranks")),
        rows_(rows),
        width_(p.in("x").shape.numel(1, p.in("x").shape.rank())) {
    check_arg(group_.size() == ranks_, ir::describe(p.op()), "the program is for ", ranks_,
              " workers, the group has ", group_.size());
  }
  void bind(const comm::Groups& groups) override { group_.bind(groups); }
  std::string_view implementation() const override { return group_.backend(); }

 protected:
  // What a group of one does.
  void copy(const kernel::SparseRows& x, const kernel::SparseRows& out) const {
    if (x.count == out.count) return;
    *out.count = *x.count;
    std::copy_n(x.ids, *x.count, out.ids);
    std::copy_n(x.values, *x.count * width_, out.values);
  }
  // The rows of a rank land behind those of the rank before it, with room for kMost each.
  std::array<Call, 3> calls(const kernel::SparseRows& x, const kernel::SparseRows& out,
                            int64_t* sizes) const {
    sizes[Sizes::kMost] = *x.count;
    sizes[Sizes::kRoom] = rows_;
    sizes[Sizes::kNegatedRoom] = -rows_;
    std::fill_n(sizes + Sizes::kCounts, ranks_, 0);
    sizes[Sizes::kCounts + group_.rank()] = *x.count;
    return {Call::all_reduce(sizes, Sizes::words(ranks_), i64, comm::ReduceOp::kMax),
            Call::all_gather(x.ids, out.ids, 1, i64).repeated(Sizes::rows, sizes),
            Call::all_gather(x.values, out.values, width_, f32).repeated(Sizes::rows, sizes)};
  }
  void finish(const kernel::SparseRows& out, const int64_t* sizes) const {
    check_arg(sizes[Sizes::kRoom] == -sizes[Sizes::kNegatedRoom], group_.op(),
              "workers have batches with ", -sizes[Sizes::kNegatedRoom], " to ",
              sizes[Sizes::kRoom], " ids, worker ", group_.rank(), " one with ", rows_,
              "; all workers must feed batches of one size");
    const int64_t most = sizes[Sizes::kMost];
    const float factor = 1.0f / static_cast<float>(ranks_);
    int64_t end = 0;
    for (int64_t rank = 0; rank < ranks_; ++rank) {  // rows move to the front, if at all
      const int64_t count = sizes[Sizes::kCounts + rank];
      std::copy_n(out.ids + rank * most, count, out.ids + end);
      std::transform(out.values + rank * most * width_, out.values + (rank * most + count) * width_,
                     out.values + end * width_, [=](float v) { return v * factor; });
      end += count;
    }
    *out.count = end;
  }

  kernel::Group group_;
  int64_t ranks_, rows_, width_;
};

class AllGatherRows final : public RowsKernel {
 public:
  explicit AllGatherRows(kernel::Prepare& p)
      : RowsKernel(p, p.in("x").rows),
        x_(p.input("x")),
        out_(p.output("out")),
        sizes_(p.scratch(static_cast<size_t>(Sizes::words(ranks_)) * sizeof(int64_t))) {}

  void run(const kernel::Run& r) override {
    const kernel::SparseRows out = r.rows(out_, ranks_ * rows_);
    auto* sizes = r.out<int64_t>(sizes_);
    for (const Call& call : calls(r.rows(x_, rows_), out, sizes)) group_->run(call);
    finish(out, sizes);
  }

 private:
  kernel::Slot x_, out_, sizes_;
};

class Start final : public RowsKernel {
 public:
  explicit Start(kernel::Prepare& p)
      : RowsKernel(p, p.in("x").rows),
        x_(p.input("x")),
        step_(p.input("step")),
        out_(p.output("out")),
        ticket_(p.output("ticket")) {}
  // A step that failed half-way leaves calls behind that work on memory of the plan.
  ~Start() override {
    if (group_.bound()) group_->settle();
  }

  void run(const kernel::Run& r) override {
    auto* ticket = r.out<kernel::Ticket>(ticket_);
    *ticket = {};
    if (ranks_ == 1) return copy(r.rows(x_, rows_), r.rows(out_, rows_));
    if (step_) group_->set_step(*r.in<int64_t>(step_));
    const auto all = calls(r.rows(x_, rows_), r.rows(out_, ranks_ * rows_),
                           reinterpret_cast<int64_t*>(ticket + 1));
    // They are done in this order: who waits for the last has waited for all.
    for (size_t i = 0; i + 1 < all.size(); ++i)
      (void)group_->start(all[i].recorded(&ticket->record));
    ticket->number = group_->post(all.back().recorded(&ticket->record));
  }

 private:
  kernel::Slot x_, step_, out_, ticket_;
};

class Wait final : public RowsKernel {
 public:
  explicit Wait(kernel::Prepare& p)
      : RowsKernel(p, p.in("held").rows),
        x_(p.input("x")),
        ticket_(p.input("ticket")),
        out_(p.output("out")) {
    p.input("held");
  }

  void run(const kernel::Run& r) override {
    const auto* ticket = r.in<kernel::Ticket>(ticket_);
    const kernel::SparseRows out = r.rows(out_, ranks_ * rows_);
    if (ticket->number == kernel::Ticket::kNone) return copy(r.rows(x_, rows_), out);
    group_->await(ticket->number);
    finish(out, reinterpret_cast<const int64_t*>(ticket + 1));
  }

 private:
  kernel::Slot x_, ticket_, out_;
};

ir::TensorType ticket_type(const ir::Infer& c) {
  return {i64, {kernel::kTicketWords + Sizes::words(c.attr<int64_t>("ranks"))}};
}

void infer(ir::Infer& c) {
  ir::TensorType out = c.in("x");
  c.check(out.kind == ir::VarKind::kSparseRows && out.dtype == f32, c.show("x"),
          "; expected sparse rows of f32");
  check_ranks(c);
  out.rows = out.rows < 0 ? -1 : out.rows * c.attr<int64_t>("ranks");
  c.out("out") = out;
}

void infer_start(ir::Infer& c) {
  infer(c);
  c.out("ticket") = ticket_type(c);
  if (c.has("step"))
    c.check(c.in("step").dtype == i64 && c.in("step").shape.numel() == 1, c.show("step"),
            "; expected i64[1]");
}

void infer_wait(ir::Infer& c) {
  c.check(c.in("x").kind == ir::VarKind::kSparseRows, c.show("x"), "; expected sparse rows");
  c.check(c.in("ticket") == ticket_type(c), c.show("ticket"),
          "; expected what all_gather_rows_start makes");
  c.check(c.in("held").kind == ir::VarKind::kSparseRows, c.show("held"),
          "; must be what all_gather_rows_start has read");
  c.out("out") = c.in("x");
}

// At most: only the rows that are there travel.
ir::Cost cost_start(const ir::Infer& c) {
  return {.communication = ir::communication_of(c, ir::CommKind::kAllGather, "x")};
}

// Who has waited divides the rows of all.
ir::Cost cost_wait(const ir::Infer& c) {
  const ir::TensorType& out = c.out("out");
  return {.flops = static_cast<double>(out.rows) *
                   static_cast<double>(out.shape.numel(1, out.shape.rank())),
          .bytes = 2 * ir::bytes_of(out)};
}

ir::Cost cost(const ir::Infer& c) {
  ir::Cost both = cost_wait(c);
  both.communication = cost_start(c).communication;
  return both;
}

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

FLEETX_OP(all_gather_rows_start)
    .input("x")
    .input("step", ir::Arity::kOptional)
    .output("out")
    .output("ticket")
    .required_attr("group", ir::AttrType::kString)
    .required_attr("ranks", ir::AttrType::kInt)
    .infer(infer_start)
    .cost(cost_start)
    .kernel<Start>()
    .collective();

FLEETX_OP(all_gather_rows_wait)
    .input("x")
    .input("ticket")
    .input("held")
    .output("out")
    .required_attr("group", ir::AttrType::kString)
    .required_attr("ranks", ir::AttrType::kInt)
    .infer(infer_wait)
    .cost(cost_wait)
    .view("out", "x")
    .kernel<Wait>()
    .collective()
    .uniform("out");

}  // namespace
}  // namespace fleetx::ops
