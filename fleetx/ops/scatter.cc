// scatter: x with the rows that `index` names replaced by the rows of `updates`.
//   overwrite=true:  out[index[i]] = updates[i]; the last of equal ids wins
//   overwrite=false: out[index[i]] = sum of the updates of that id (the old row does not count)
// dx = dout with the named rows zero; dupdates[i] = dout[index[i]], but zero for an update that was
// overwritten. Overwriting any dtype, sums f32, f64, i32, i64.
#include "fleetx/base/simd.h"
#include "fleetx/ops/lib/rows.h"
#include "fleetx/ops/lib/sparse_rows.h"
#include "fleetx/ops/lib/strided_copy.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const ir::TensorType &x = c.in("x"), &updates = c.in("updates");
  const Shape& index = c.in("index").shape;
  check_ids(c, "index");
  c.check(x.shape.rank() > 0, c.show("x"), "; must have rows");
  bool fits = updates.shape.rank() == x.shape.rank() && updates.dtype == x.dtype &&
              updates.shape[0] == index.numel();
  for (int d = 1; fits && d < x.shape.rank(); ++d) fits = updates.shape[d] == x.shape[d];
  c.check(fits, c.show("updates"), ", ", c.show("x"), ", ", c.show("index"),
          "; updates must have one row of x per id");
  c.check(c.attr<bool>("overwrite") || x.dtype == f32 || x.dtype == f64 || x.dtype == i32 ||
              x.dtype == i64,
          c.show("x"), "; sums are of f32, f64, i32 or i64");
  c.out("out") = x;
}

void grad(ir::Grad& g) {
  std::vector<ir::Dest> dests;
  if (g.needs("x")) dests.emplace_back("dx", g.dx("x"));
  if (g.needs("updates")) dests.emplace_back("dupdates", g.dx("updates"));
  if (dests.empty()) return;
  const ir::Results r = g.op("scatter_grad", {{"index", g.in("index")}, {"dout", g.dout("out")}},
                             {{"overwrite", g.attr<bool>("overwrite")}}, dests);
  if (g.needs("x")) g.set("x", r["dx"]);
  if (g.needs("updates")) g.set("updates", r["dupdates"]);
}

void infer_grad(ir::Infer& c) {
  const ir::TensorType& dout = c.in("dout");
  if (c.out_count("dx") > 0) c.out("dx") = dout;
  if (c.out_count("dupdates") == 0) return;
  c.out("dupdates") = dout;
  c.out("dupdates").shape[0] = c.in("index").shape.numel();
}

class ScatterKernel final : public kernel::Kernel {
 public:
  explicit ScatterKernel(kernel::Prepare& p)
      : x_(p.input("x")),
        updates_(p.input("updates")),
        out_(p.output("out")),
        index_(p, "index", p.in("x").shape[0], "rows of x"),
        overwrite_(p.attr<bool>("overwrite")),
        dtype_(p.in("x").dtype),
        width_(p.in("x").shape.numel(1, p.in("x").shape.rank())),
        whole_(1, {{static_cast<int64_t>(p.in("x").bytes()), 1, 1}}) {}

  void run(const kernel::Run& r) override {
    const Ids ids = index_.checked(r);
    if (r.raw(x_) != r.raw(out_)) whole_.run(r.raw(x_), r.raw(out_));
    const int64_t n = index_.count();
    const auto bytes = static_cast<size_t>(width_) * size_of(dtype_);
    const char* updates = r.in<char>(updates_);
    char* out = r.out<char>(out_);
    const auto row = [=](int64_t i) { return out + ids(i) * static_cast<int64_t>(bytes); };
    if (overwrite_) {
      return for_each_owned(ids, n, n * width_, [=](int64_t i) {
        std::memcpy(row(i), updates + i * static_cast<int64_t>(bytes), bytes);
      });
    }
    for_each_owned(ids, n, n * width_, [=](int64_t i) { std::memset(row(i), 0, bytes); });
    switch (dtype_) {
      case DType::kF32: return add_rows(ids, n, width_, r.in<float>(updates_), r.out<float>(out_));
      case DType::kF64:
        return add_rows(ids, n, width_, r.in<double>(updates_), r.out<double>(out_));
      case DType::kI32:
        return add_rows(ids, n, width_, r.in<int32_t>(updates_), r.out<int32_t>(out_));
      default: return add_rows(ids, n, width_, r.in<int64_t>(updates_), r.out<int64_t>(out_));
    }
  }

 private:
  kernel::Slot x_, updates_, out_;
  IdInput index_;
  bool overwrite_;
  DType dtype_;
  int64_t width_;
  StridedCopy whole_;
};

class ScatterGradKernel final : public kernel::Kernel {
 public:
  explicit ScatterGradKernel(kernel::Prepare& p)
      : dout_(p.input("dout")),
        dx_(p.output("dx")),
        dupdates_(p.output("dupdates")),
        index_(p, "index", p.in("dout").shape[0], "rows of x"),
        bytes_(p.in("dout").shape.numel(1, p.in("dout").shape.rank()) *
               static_cast<int64_t>(size_of(p.in("dout").dtype))),
        whole_(1, {{static_cast<int64_t>(p.in("dout").bytes()), 1, 1}}) {
    const auto n = static_cast<size_t>(index_.count());
    if (dupdates_ && p.attr<bool>("overwrite")) {
      ids_ = p.scratch(n * sizeof(int64_t));
      entries_ = p.scratch(2 * n * sizeof(MergeRows::Entry));
    }
  }

  void run(const kernel::Run& r) override {
    const Ids ids = index_.checked(r);
    const int64_t n = index_.count(), bytes = bytes_;
    if (dupdates_) run_updates(r, ids);
    if (!dx_) return;
    whole_.run(r.raw(dout_), r.raw(dx_));
    char* dx = r.out<char>(dx_);
    for_each_owned(ids, n, n * bytes, [=](int64_t i) {
      std::memset(dx + ids(i) * bytes, 0, static_cast<size_t>(bytes));
    });
  }

 private:
  void run_updates(const kernel::Run& r, const Ids& ids) const {
    const int64_t n = index_.count();
    const char* dout = r.in<char>(dout_);
    char* dupdates = r.out<char>(dupdates_);
    if (!ids_) return copy_rows(ids, n, bytes_, dout, dupdates);
    auto* row = r.out<int64_t>(ids_);
    for (int64_t i = 0; i < n; ++i) row[i] = ids(i);
    const MergeRows::Entry* sorted = MergeRows::sort(row, n, r.out<MergeRows::Entry>(entries_));
    for (int64_t i = 0; i + 1 < n; ++i)
      if (sorted[i].id == sorted[i + 1].id) row[sorted[i].position] = -1;
    copy_rows(Ids(row, true), n, bytes_, dout, dupdates);
  }

  kernel::Slot dout_, dx_, dupdates_;
  IdInput index_;
  int64_t bytes_;
  StridedCopy whole_;
  kernel::Slot ids_, entries_;
};

FLEETX_OP(scatter)
    .input("x")
    .input("index")
    .input("updates")
    .output("out")
    .attr("overwrite", true)
    .infer(infer)
    .grad(grad)
    .kernel<ScatterKernel>()
    .in_place("out", "x");

FLEETX_OP(scatter_grad)
    .input("index")
    .input("dout")
    .output("dx", ir::Arity::kOptional)
    .output("dupdates", ir::Arity::kOptional)
    .attr("overwrite", true)
    .infer(infer_grad)
    .kernel<ScatterGradKernel>();

}  // namespace
}  // namespace fleetx::ops
