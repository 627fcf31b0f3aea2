// Sums over several steps, kept in state:
//   accumulate       acc = start ? x : acc + x             dense f32; start is bool[1]
//   accumulate_rows  acc[id] += row, touched[id] += 1      for all rows of x, which is sparse
//   take_rows        out = the touched rows of acc, times factor (and scale); then acc and touched
//                    are 0 again
// acc of the rows has the shape of the whole table, as a moment of an optimizer has, because the
// number of rows in a batch is not known before it comes; only touched rows are read or written.
// touched is f32 [rows of the table]. out has room for `batches` times the rows of `like`, the
// gradient of the last batch, and for kLeastRoom rows: after resuming with more workers the sum has
// those of the larger batches before. ids ascend and are distinct. acc and touched are updated in
// place.
// No gradients.
#include <algorithm>
#include <cstring>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/sparse_rows.h"

namespace fleetx::ops {
namespace {

constexpr int64_t kLeastRoom = 4096;

void check_in_place(const ir::Infer& c, std::string_view slot) {
  c.check(c.op().out(str(slot, "_out")) == c.op().in(slot), "output '", slot,
          "_out' must be the variable of input '", slot, "': it is updated in place");
}

void infer(ir::Infer& c) {
  c.check(c.in("acc").dtype == f32 && c.in("acc").kind == ir::VarKind::kDense, c.show("acc"),
          "; expected dense f32");
  c.check(c.in("x") == c.in("acc"), c.show("x"), ", but ", c.show("acc"));
  c.check(c.in("start").dtype == boolean && c.in("start").shape == Shape{1}, c.show("start"),
          "; expected bool[1]");
  check_in_place(c, "acc");
  c.out("acc_out") = c.in("acc");
}

void infer_table(ir::Infer& c, std::string_view rows) {
  const ir::TensorType& acc = c.in("acc");
  c.check(acc.dtype == f32 && acc.kind == ir::VarKind::kDense && acc.shape.rank() >= 1,
          c.show("acc"), "; expected dense f32 with a dimension 0");
  c.check(c.in(rows).kind == ir::VarKind::kSparseRows && c.in(rows).dtype == f32 &&
              c.in(rows).shape == acc.shape,
          c.show(rows), "; expected sparse rows of ", acc);
  c.check(c.in("touched") == ir::TensorType{f32, {acc.shape[0]}}, c.show("touched"),
          "; expected f32", Shape{acc.shape[0]});
  for (const char* slot : {"acc", "touched"}) {
    check_in_place(c, slot);
    c.out(str(slot, "_out")) = c.in(slot);
  }
}

void infer_accumulate_rows(ir::Infer& c) { infer_table(c, "x"); }

void infer_take_rows(ir::Infer& c) {
  infer_table(c, "like");
  const auto batches = c.attr<int64_t>("batches");
  c.check(batches >= 1, "batches is ", batches, "; must be at least 1");
  if (c.has("scale"))
    c.check(c.in("scale") == ir::TensorType{f32, {1}}, c.show("scale"), "; expected f32[1]");
  ir::TensorType out = c.in("like");
  if (out.rows >= 0)
    out.rows = std::max(out.rows * batches, std::min(kLeastRoom, c.in("acc").shape[0]));
  c.out("out") = out;
}

ir::Cost cost(const ir::Infer& c) {
  const auto n = static_cast<double>(c.in("acc").shape.numel());
  return {.flops = n, .bytes = 12 * n};
}

// Of the rows only, not of the table.
ir::Cost cost_of_rows(const ir::Infer& c) {
  const bool takes = c.op().type() == "take_rows";
  const ir::TensorType& rows = takes ? c.out("out") : c.in("x");
  const auto n =
      static_cast<double>(rows.rows) * static_cast<double>(rows.shape.numel(1, rows.shape.rank()));
  return {.flops = n, .bytes = 12 * n + (takes ? 4.0 * static_cast<double>(rows.shape[0]) : 0.0)};
}

// State that the plan had to convert between layouts has other memory as output than as input.
template <class T>
T* updated(const kernel::Run& r, kernel::Slot in, kernel::Slot out, int64_t n) {
  if (r.raw(in) != r.raw(out)) std::copy_n(r.in<T>(in), n, r.out<T>(out));
  return r.out<T>(out);
}

class Accumulate final : public kernel::Kernel {
 public:
  explicit Accumulate(kernel::Prepare& p) {
    const Layout layout = p.in("x").layout;
    acc_ = p.input("acc", 0, layout);
    x_ = p.input("x", 0, layout);
    start_ = p.input("start");
    out_ = p.output("acc_out", 0, layout);
    n_ = layout.stored(p.in("x").shape);
  }

  void run(const kernel::Run& r) override {
    const float* acc = r.in<float>(acc_);
    const float* x = r.in<float>(x_);
    float* out = r.out<float>(out_);
    const bool start = *r.in<bool>(start_);
    parallel_for(n_, 1 << 15, [=](int64_t begin, int64_t end) {
      if (start) {
        std::copy(x + begin, x + end, out + begin);
        return;
      }
      vectorized([=] {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) out[i] = acc[i] + x[i];
      });
    });
  }

 private:
  kernel::Slot acc_, x_, start_, out_;
  int64_t n_;
};

// acc and touched, and the rows that are put there or taken.
struct RowTable {
  RowTable(kernel::Prepare& p)
      : acc(p.input("acc")),
        acc_out(p.output("acc_out")),
        touched(p.input("touched")),
        touched_out(p.output("touched_out")),
        rows(p.in("acc").shape[0]),
        width(p.in("acc").shape.numel(1, p.in("acc").shape.rank())) {}

  float* values(const kernel::Run& r) const {
    return updated<float>(r, acc, acc_out, rows * width);
  }
  float* marks(const kernel::Run& r) const { return updated<float>(r, touched, touched_out, rows); }

  kernel::Slot acc, acc_out, touched, touched_out;
  int64_t rows, width;
};

class AccumulateRows final : public kernel::Kernel {
 public:
  explicit AccumulateRows(kernel::Prepare& p)
      : table_(p), x_(p.input("x")), capacity_(p.in("x").rows) {}

  void run(const kernel::Run& r) override {
    const kernel::SparseRows x = r.rows(x_, capacity_);
    float* touched = table_.marks(r);
    const auto id = [&](int64_t i) { return x.ids[i]; };
    add_rows(id, *x.count, table_.width, x.values, table_.values(r));
    for (int64_t i = 0; i < *x.count; ++i) touched[x.ids[i]] += 1;
  }

 private:
  RowTable table_;
  kernel::Slot x_;
  int64_t capacity_;
};

class TakeRows final : public kernel::Kernel {
 public:
  explicit TakeRows(kernel::Prepare& p)
      : table_(p),
        scale_(p.input("scale")),
        out_(p.output("out")),
        capacity_(p.out("out").rows),
        factor_(p.attr<float>("factor")),
        where_(ir::describe(p.op())) {}

  void run(const kernel::Run& r) override {
    const kernel::SparseRows out = r.rows(out_, capacity_);
    float* acc = table_.values(r);
    float* touched = table_.marks(r);
    const float factor = factor_ * (scale_ ? *r.in<float>(scale_) : 1.0f);
    const int64_t width = table_.width;
    int64_t count = 0;
    for (int64_t id = 0; id < table_.rows; ++id) {
      if (touched[id] == 0) continue;
      check_arg(
          count < capacity_, where_, "more than ", capacity_,
          " rows were touched since the last update, but there is room for those of batches "
          "as large as this one only; feed batches of one size (drop_last=True). After resuming "
          "with more workers: begin at a step that ends a merge, or with as many as before");
      out.ids[count++] = id;
      touched[id] = 0;
    }
    *out.count = count;
    parallel_for(count, std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, width)),
                 [=](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     float* from = acc + out.ids[i] * width;
                     float* to = out.values + i * width;
                     for (int64_t j = 0; j < width; ++j) to[j] = factor * from[j];
                     std::memset(from, 0, static_cast<size_t>(width) * sizeof(float));
                   }
                 });
  }

 private:
  RowTable table_;
  kernel::Slot scale_, out_;
  int64_t capacity_;
  float factor_;
  std::string where_;
};

FLEETX_OP(accumulate)
    .input("acc")
    .input("x")
    .input("start")
    .output("acc_out")
    .infer(infer)
    .cost(cost)
    .kernel<Accumulate>();

FLEETX_OP(accumulate_rows)
    .input("acc")
    .input("touched")
    .input("x")
    .output("acc_out")
    .output("touched_out")
    .infer(infer_accumulate_rows)
    .cost(cost_of_rows)
    .kernel<AccumulateRows>();

FLEETX_OP(take_rows)
    .input("acc")
    .input("touched")
    .input("like")
    .input("scale", ir::Arity::kOptional)
    .output("out")
    .output("acc_out")
    .output("touched_out")
    .attr("batches", 1)
    .attr("factor", 1.0)
    .infer(infer_take_rows)
    .cost(cost_of_rows)
    .kernel<TakeRows>()
    .shape_only("like");

}  // namespace
}  // namespace fleetx::ops
