// embedding: out[i] = w[ids[i]], zeros where ids[i] == padding_idx (-1: no padding).
//   out.shape = ids.shape + [D] for w [V,D].
// dw[ids[i]] += dout[i], in order of i; padding adds nothing. sparse=true: dw is sparse rows, one
// per id that is not padding, so that neither time nor memory depends on V. any_id=true: the table
// is elsewhere and takes any id >= 0, also beyond V.
#include "fleetx/ops/lib/in_f32.h"
#include "fleetx/ops/lib/rows.h"
#include "fleetx/ops/lib/sparse_rows.h"
#include "fleetx/ops/lib/strided_copy.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const ir::TensorType& w = c.in("w");
  check_ids(c, "ids");
  c.check(w.shape.rank() == 2, c.show("w"), "; must be [rows, width]");
  c.check(!c.attr<bool>("sparse") || w.dtype == f32, c.show("w"),
          "; a sparse gradient needs f32 parameters");
  const auto padding = c.attr<int64_t>("padding_idx");
  c.check(padding >= -1 && padding < w.shape[0], c.show("w"), "; padding_idx must be in [-1, ",
          w.shape[0], "), got ", padding);
  Shape shape = c.in("ids").shape;
  shape.push_back(w.shape[1]);
  c.out("out") = {w.dtype, shape, ir::VarKind::kDense, -1};
}

void grad(ir::Grad& g) {
  if (!g.needs("w")) return;
  ir::Attrs attrs = g.attrs();
  attrs.insert_or_assign("shape", g.in("w").shape());
  g.set("w", g.op("embedding_grad", {{"ids", g.in("ids")}, {"dout", g.dout("out")}}, attrs,
                  {{"dw", g.dx("w")}}));
}

void infer_grad(ir::Infer& c) {
  const Shape shape = c.attr<Shape>("shape"), &ids = c.in("ids").shape, &dout = c.in("dout").shape;
  c.check(shape.rank() == 2 && shape.known(), "shape ", shape, " must be [rows, width]");
  c.check(dout.rank() == ids.rank() + 1 && dout.back() == shape[1] &&
              dout.numel(0, ids.rank()) == ids.numel(),
          c.show("dout"), ", ", c.show("ids"), "; w has shape ", shape);
  const bool sparse = c.attr<bool>("sparse");
  c.check(sparse || !c.attr<bool>("any_id"), "any_id=true needs a sparse gradient");
  c.out("dw") = {c.in("dout").dtype, shape, sparse ? ir::VarKind::kSparseRows : ir::VarKind::kDense,
                 sparse ? ids.numel() : -1};
}

// Row numbers, with padding as -1.
auto unpadded(const Ids& ids, int64_t padding) {
  return [=](int64_t i) {
    const int64_t id = ids(i);
    return id == padding ? -1 : id;
  };
}

class EmbeddingKernel final : public kernel::Kernel {
 public:
  explicit EmbeddingKernel(kernel::Prepare& p)
      : ids_(p, "ids", p.in("w").shape[0], str("rows in w '", p.op().in("w").front(), "'")),
        w_(p.input("w")),
        out_(p.output("out")),
        padding_(p.attr<int64_t>("padding_idx")),
        bytes_(p.in("w").shape[1] * static_cast<int64_t>(size_of(p.in("w").dtype))) {}

  void run(const kernel::Run& r) override {
    const Ids ids = ids_.checked(r);
    const char* w = r.in<char>(w_);
    char* out = r.out<char>(out_);
    if (padding_ < 0) return copy_rows(ids, ids_.count(), bytes_, w, out);
    copy_rows(unpadded(ids, padding_), ids_.count(), bytes_, w, out);
  }

 private:
  IdInput ids_;
  kernel::Slot w_, out_;
  int64_t padding_, bytes_;
};

template <class T>
class DenseGradKernel final : public kernel::Kernel {
 public:
  explicit DenseGradKernel(kernel::Prepare& p)
      : ids_(p, "ids", p.out("dw").shape[0], "rows in w"),
        dout_(p.input("dout")),
        dw_(p.output("dw")),
        padding_(p.attr<int64_t>("padding_idx")),
        width_(p.out("dw").shape[1]),
        bytes_(p.out("dw").bytes()) {}

  void run(const kernel::Run& r) override {
    const Ids ids = ids_.checked(r);
    zero_fill(r.raw(dw_), bytes_);
    add_rows(unpadded(ids, padding_), ids_.count(), width_, r.in<T>(dout_), r.out<T>(dw_));
  }
  std::string_view implementation() const override { return "dense"; }

 private:
  IdInput ids_;
  kernel::Slot dout_, dw_;
  int64_t padding_, width_;
  size_t bytes_;
};

class SparseGradKernel final : public kernel::Kernel {
 public:
  explicit SparseGradKernel(kernel::Prepare& p)
      : ids_(p, "ids", p.attr<bool>("any_id") ? INT64_MAX : p.out("dw").shape[0], "rows in w"),
        dout_(p.input("dout")),
        dw_(p.output("dw")),
        padding_(p.attr<int64_t>("padding_idx")),
        width_(p.out("dw").shape[1]),
        capacity_(p.out("dw").rows),
        positions_(p.scratch(static_cast<size_t>(capacity_) * sizeof(int64_t))) {}

  void run(const kernel::Run& r) override {
    const Ids ids = ids_.checked(r);
    const kernel::SparseRows dw = r.rows(dw_, capacity_);
    auto* positions = r.out<int64_t>(positions_);
    int64_t count = 0;
    for (int64_t i = 0; i < ids_.count(); ++i) {
      dw.ids[count] = ids(i);
      positions[count] = i;
      count += ids(i) != padding_;
    }
    *dw.count = count;
    const float* dout = r.in<float>(dout_);
    if (count == ids_.count()) {  // the usual case: all rows, as they stand
      parallel_for(count * width_, 1 << 15, [=](int64_t begin, int64_t end) {
        std::copy(dout + begin, dout + end, dw.values + begin);
      });
    } else {
      copy_rows(Ids(positions, true), count, width_ * static_cast<int64_t>(sizeof(float)),
                reinterpret_cast<const char*>(dout), reinterpret_cast<char*>(dw.values));
    }
  }
  std::string_view implementation() const override { return "sparse rows"; }

 private:
  IdInput ids_;
  kernel::Slot dout_, dw_;
  int64_t padding_, width_, capacity_;
  kernel::Slot positions_;
};

std::unique_ptr<kernel::Kernel> make_grad(kernel::Prepare& p) {
  if (p.out("dw").kind == ir::VarKind::kSparseRows) return std::make_unique<SparseGradKernel>(p);
  if (p.in("dout").dtype == f64) return std::make_unique<DenseGradKernel<double>>(p);
  check_arg(p.in("dout").dtype == f32, ir::describe(p.op()), "no kernel for ", p.in("dout").dtype);
  return std::make_unique<DenseGradKernel<float>>(p);
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

FLEETX_OP(embedding)
    .input("ids")
    .input("w")
    .output("out")
    .attr("padding_idx", -1)
    .attr("sparse", false)
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel<EmbeddingKernel>();

FLEETX_OP(embedding_grad)
    .input("ids")
    .input("dout")
    .output("dw")
    .attr("padding_idx", -1)
    .attr("sparse", false)
    .attr("any_id", false)
    .required_attr("shape", ir::AttrType::kInts)
    .infer(infer_grad)
    .cost(cost_grad)
    .kernel(also_half<make_grad>);

}  // namespace
}  // namespace fleetx::ops
