// embedding_part: rows of a table that the ranks of a group divide: rank r has the rows from r * V
// on, in w [V,D].
//   out[i] = w[ids[i] - r * V] where this rank has that row, zeros elsewhere.
//   dw[ids[i] - r * V] += dout[i], in order of i, for the rows of this rank.
// The sum of out over the ranks (group_sum) is the embedding. Ids are in [0, ranks * V).
#include "fleetx/kernel/group.h"
#include "fleetx/ops/lib/ranks.h"
#include "fleetx/ops/lib/rows.h"
#include "fleetx/ops/lib/sparse_rows.h"
#include "fleetx/ops/lib/strided_copy.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const ir::TensorType& w = c.in("w");
  check_ids(c, "ids");
  c.check(w.shape.rank() == 2 && (w.dtype == f32 || w.dtype == f64), c.show("w"),
          "; must be [rows, width] of f32 or f64");
  check_ranks(c);
  Shape shape = c.in("ids").shape;
  shape.push_back(w.shape[1]);
  c.out("out") = {w.dtype, shape, ir::VarKind::kDense, -1};
}

void grad(ir::Grad& g) {
  if (!g.needs("w")) return;
  ir::Attrs attrs = g.attrs();
  attrs.insert_or_assign("shape", g.in("w").shape());
  g.set("w", g.op("embedding_part_grad", {{"ids", g.in("ids")}, {"dout", g.dout("out")}}, attrs,
                  {{"dw", g.dx("w")}}));
}

void infer_grad(ir::Infer& c) {
  const Shape shape = c.attr<Shape>("shape"), &ids = c.in("ids").shape, &dout = c.in("dout").shape;
  c.check(shape.rank() == 2 && shape.known(), "shape ", shape, " must be [rows, width]");
  c.check(dout.rank() == ids.rank() + 1 && dout.back() == shape[1] &&
              dout.numel(0, ids.rank()) == ids.numel(),
          c.show("dout"), ", ", c.show("ids"), "; w has shape ", shape);
  c.check(c.in("dout").dtype == f32 || c.in("dout").dtype == f64, c.show("dout"),
          "; must be f32 or f64");
  c.out("dw") = {c.in("dout").dtype, shape, ir::VarKind::kDense, -1};
}

class PartKernel : public kernel::Kernel {
 public:
  PartKernel(kernel::Prepare& p, const Shape& table)
      : group_(group_of_ranks(p)),
        ids_(p, "ids", table[0] * group_.size(), "rows in the whole table"),
        rows_(table[0]),
        first_(rows_ * group_.rank()) {}

 protected:
  // The row of this rank, -1 where it has none.
  auto own_rows(const kernel::Run& r) const {
    const Ids ids = ids_.checked(r);
    const int64_t first = first_, end = first_ + rows_;
    return [=](int64_t i) {
      const int64_t id = ids(i);
      return id >= first && id < end ? id - first : -1;
    };
  }

  kernel::Group group_;
  IdInput ids_;
  int64_t rows_, first_;
};

class EmbeddingPart final : public PartKernel {
 public:
  explicit EmbeddingPart(kernel::Prepare& p)
      : PartKernel(p, p.in("w").shape),
        w_(p.input("w")),
        out_(p.output("out")),
        bytes_(p.in("w").shape[1] * static_cast<int64_t>(size_of(p.in("w").dtype))) {}

  void run(const kernel::Run& r) override {
    copy_rows(own_rows(r), ids_.count(), bytes_, r.in<char>(w_), r.out<char>(out_));
  }

 private:
  kernel::Slot w_, out_;
  int64_t bytes_;
};

template <class T>
class GradKernel final : public PartKernel {
 public:
  explicit GradKernel(kernel::Prepare& p)
      : PartKernel(p, p.out("dw").shape),
        dout_(p.input("dout")),
        dw_(p.output("dw")),
        width_(p.out("dw").shape[1]),
        bytes_(p.out("dw").bytes()) {}

  void run(const kernel::Run& r) override {
    zero_fill(r.raw(dw_), bytes_);
    add_rows(own_rows(r), ids_.count(), width_, r.in<T>(dout_), r.out<T>(dw_));
  }

 private:
  kernel::Slot dout_, dw_;
  int64_t width_;
  size_t bytes_;
};

std::unique_ptr<kernel::Kernel> make_grad(kernel::Prepare& p) {
  if (p.in("dout").dtype == f64) return std::make_unique<GradKernel<double>>(p);
  return std::make_unique<GradKernel<float>>(p);
}

// The work grows with the ids, not with the table.
ir::Cost cost(const ir::Infer& c) {
  return {.bytes = ir::bytes_of(c.in("ids")) + 2 * ir::bytes_of(c.out("out"))};
}
ir::Cost cost_grad(const ir::Infer& c) {
  return {
      .flops = static_cast<double>(c.in("dout").shape.numel()),
      .bytes = ir::bytes_of(c.in("ids")) + ir::bytes_of(c.in("dout")) + ir::bytes_of(c.out("dw"))};
}

FLEETX_OP(embedding_part)
    .input("ids")
    .input("w")
    .output("out")
    .required_attr("group", ir::AttrType::kString)
    .required_attr("ranks", ir::AttrType::kInt)
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel<EmbeddingPart>()
    .collective();

FLEETX_OP(embedding_part_grad)
    .input("ids")
    .input("dout")
    .output("dw")
    .required_attr("group", ir::AttrType::kString)
    .required_attr("ranks", ir::AttrType::kInt)
    .required_attr("shape", ir::AttrType::kInts)
    .infer(infer_grad)
    .cost(cost_grad)
    .kernel(make_grad)
    .collective();

}  // namespace
}  // namespace fleetx::ops
