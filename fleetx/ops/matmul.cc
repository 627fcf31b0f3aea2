// matmul: out = alpha * x * y, the matrices being the last two dimensions,
// transposed first where asked for. The dimensions before them broadcast
// against each other. A vector x is a row, a vector y a column (transposing
// them changes nothing), and that dimension is missing in out; the product of
// two vectors has shape [1]. With a = x and b = y after transposing: da = alpha
// * dout * b^T, db = alpha * a^T * dout, summed over the dimensions that were
// broadcast. Both are matmuls again, which read x, y and dout.
#include <optional>

#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/bf16.h"
#include "fleetx/ops/lib/bf16_product.h"
#include "fleetx/ops/lib/gemm.h"
#include "fleetx/ops/lib/half.h"
#include "fleetx/ops/lib/in_f32.h"
#include "fleetx/ops/lib/onednn.h"

namespace fleetx::ops {
namespace {

// The problem with every operand a stack of matrices.
struct Problem {
  Shape x_batch, y_batch, batch;  // the same rank
  int64_t rows = 1, inner = 1, columns = 1;
  bool transpose_x = false, transpose_y = false;
};

Shape batch_of(const Shape& shape) {
  const auto& dims = shape.dims();
  return Shape(std::vector<int64_t>(dims.begin(), dims.end() - std::min(2, shape.rank())));
}

Shape padded_to(const Shape& batch, int rank) {
  Shape out(std::vector<int64_t>(static_cast<size_t>(rank - batch.rank()), 1));
  for (const int64_t d : batch) out.push_back(d);
  return out;
}

template <class Args>
Problem problem(const Args& args) {
  const Shape &x = args.in("x").shape, &y = args.in("y").shape;
  Problem p;
  p.transpose_x = x.rank() > 1 && args.template attr<bool>("transpose_x");
  p.transpose_y = y.rank() > 1 && args.template attr<bool>("transpose_y");
  const int64_t x_rows = x.rank() > 1 ? x[x.rank() - 2] : 1, x_columns = x.back();
  const int64_t y_rows = y.rank() > 1 ? y[y.rank() - 2] : y.back();
  const int64_t y_columns = y.rank() > 1 ? y.back() : 1;
  p.rows = p.transpose_x ? x_columns : x_rows;
  p.inner = p.transpose_x ? x_rows : x_columns;
  p.columns = p.transpose_y ? y_rows : y_columns;
  const Shape xb = batch_of(x), yb = batch_of(y);
  const int rank = std::max(xb.rank(), yb.rank());
  p.x_batch = padded_to(xb, rank);
  p.y_batch = padded_to(yb, rank);
  for (int d = 0; d < rank; ++d) {
    const int64_t a = p.x_batch[d], b = p.y_batch[d];
    p.batch.push_back(a == 1 ? b : b == 1 ? a : std::min(a, b));
  }
  return p;
}

void infer(ir::Infer& c) {
  for (const auto* slot : {"x", "y"})
    c.check(is_f32_or_half(c.in(slot).dtype) && c.in(slot).shape.rank() >= 1, c.show(slot),
            "; expected f32, bf16 or f16 of rank 1 or more");
  c.check(c.in("x").dtype == c.in("y").dtype, c.show("x"), ", but ", c.show("y"));
  const Problem p = problem(c);
  const Shape& y = c.in("y").shape;
  const int64_t y_inner = y.rank() == 1 ? y[0] : y[y.rank() - (p.transpose_y ? 1 : 2)];
  c.check(p.inner == y_inner, c.show("x"), ", ", c.show("y"), ", transpose_x ", p.transpose_x,
          ", transpose_y ", p.transpose_y, "; the inner dimensions must be equal");
  for (int d = 0; d < p.batch.rank(); ++d)
    c.check(
        c.by_example() || p.x_batch[d] == p.y_batch[d] || p.x_batch[d] == 1 || p.y_batch[d] == 1,
        c.show("x"), ", ", c.show("y"), "; the leading dimensions ", p.x_batch, " and ", p.y_batch,
        " do not broadcast");
  Shape out = p.batch;
  if (c.in("x").shape.rank() > 1) out.push_back(p.rows);
  if (y.rank() > 1) out.push_back(p.columns);
  if (out.rank() == 0) out.push_back(1);
  c.out("out") = {c.in("x").dtype, out};
}

ir::Cost cost(const ir::Infer& c) {
  return {.flops = 2.0 * static_cast<double>(c.out("out").shape.numel()) *
                   static_cast<double>(problem(c).inner)};
}

ir::Var multiply(ir::Grad& g, const ir::Var& x, const ir::Var& y, bool transpose_x,
                 bool transpose_y, const std::vector<ir::Dest>& dests) {
  return g.op("matmul", {{"x", x}, {"y", y}},
              {{"transpose_x", transpose_x},
               {"transpose_y", transpose_y},
               {"alpha", g.attr<double>("alpha")}},
              dests);
}

ir::Var unsqueezed(ir::Grad& g, const ir::Var& x, int axis) {
  return g.op("unsqueeze", {{"x", x}}, {{"axes", ir::Ints{axis}}});
}

// Hands over the gradient of an operand that entered the product as `operand`.
void finish(ir::Grad& g, const std::string& slot, const ir::Var& operand, ir::Var gradient) {
  if (gradient.shape() != operand.shape())
    gradient = g.op("sum_to", {{"x", gradient}}, {{"shape", operand.shape()}, {"axis", -1}});
  if (g.in(slot).shape().rank() == 1)
    gradient = g.op("squeeze", {{"x", gradient}}, {{"axes", ir::Ints{slot == "x" ? 0 : 1}}},
                    {{"out", g.dx(slot)}});
  g.set(slot, gradient);
}

void grad(ir::Grad& g) {
  ir::Var x = g.in("x"), y = g.in("y"), dout = g.dout("out");
  const bool row = x.shape().rank() == 1, column = y.shape().rank() == 1;
  const bool tx = !row && g.attr<bool>("transpose_x"), ty = !column && g.attr<bool>("transpose_y");
  if (row) {
    x = unsqueezed(g, x, 0);
    // Two vectors give [1], which is their row already.
    if (!column) dout = unsqueezed(g, dout, dout.shape().rank() - 1);
  }
  if (column) {
    y = unsqueezed(g, y, 1);
    dout = unsqueezed(g, dout, dout.shape().rank());
  }
  const int rank = dout.shape().rank();
  const auto dests = [&](const std::string& slot, const ir::Var& operand) {
    const bool last = operand.shape().rank() == rank && g.in(slot).shape().rank() > 1;
    return last ? std::vector<ir::Dest>{{"out", g.dx(slot)}} : std::vector<ir::Dest>{};
  };
  if (g.needs("x"))
    finish(g, "x", x,
           tx ? multiply(g, y, dout, ty, true, dests("x", x))
              : multiply(g, dout, y, false, !ty, dests("x", x)));
  if (!g.needs("y")) return;
  // One matrix y for a stack of x: the sum over the stack is part of a single
  // product.
  if (rank > 2 && y.shape().rank() == 2 && !tx && !row && x.shape().rank() == rank) {
    x = g.op("flatten", {{"x", x}}, {{"axis", rank - 1}});
    dout = g.op("flatten", {{"x", dout}}, {{"axis", rank - 1}});
  }
  finish(g, "y", y,
         ty ? multiply(g, dout, x, true, tx, dests("y", y))
            : multiply(g, x, dout, !tx, false, dests("y", y)));
}

// Leading dimensions that say nothing are put together: oneDNN is fastest with
// few of them.
void simplify(Problem& p) {
  if (p.y_batch.numel() == 1 && !p.transpose_x) {
    p.rows *= p.batch.numel();
    p.x_batch = p.y_batch = p.batch = {};
  } else if (p.x_batch == p.y_batch) {
    p.x_batch = p.y_batch = p.batch = {p.batch.numel()};
  } else if (p.x_batch.numel() == 1 || p.y_batch.numel() == 1) {
    p.x_batch = {p.x_batch.numel()};
    p.y_batch = {p.y_batch.numel()};
    p.batch = {p.batch.numel()};
  }
}

// One product.
class Matmul final : public kernel::Kernel {
 public:
  Matmul(kernel::Prepare& p, const Problem& q)
      : product_{.rows = q.rows,
                 .inner = q.inner,
                 .columns = q.columns,
                 .transpose_a = q.transpose_x,
                 .transpose_b = q.transpose_y,
                 .alpha = p.attr<float>("alpha"),
                 .definition = p.skips().strassen,
                 .type_a = p.in("x").dtype,
                 .type_b = p.in("y").dtype,
                 .type_c = p.out("out").dtype},
        x_(p.input("x")),
        y_(p.input("y")),
        out_(p.output("out")) {
    if (Bf16Product::wanted(product_))
      in_bf16_.emplace(p, product_, x_, y_, out_);
    else if (const int64_t floats = product_.scratch(); floats > 0)
      scratch_ = p.scratch(static_cast<size_t>(floats) * sizeof(float));
    Gemm::prepare();
  }
  void run(const kernel::Run& r) override {
    if (in_bf16_) return in_bf16_->run(r);
    product_.run(r.raw(x_), r.raw(y_), r.raw(out_), nullptr, nullptr, r.out<float>(scratch_));
  }
  std::string_view implementation() const override {
    return in_bf16_ ? in_bf16_->implementation() : product_.implementation();
  }

 private:
  Gemm product_;
  std::optional<Bf16Product> in_bf16_;  // where the CPU multiplies bf16
  kernel::Slot x_, y_, out_, scratch_;
};

// A stack of matrices; `transposed`: in memory they are [batch..., columns,
// rows].
onednn::memory::desc matrices(DType dtype, Shape shape, int64_t rows, int64_t columns,
                              bool transposed = false) {
  shape.push_back(rows);
  shape.push_back(columns);
  Layout layout;
  if (transposed) {
    for (int d = 0; d < shape.rank(); ++d) layout.order.push_back(d);
    std::swap(layout.order[layout.order.size() - 2], layout.order.back());
  }
  return onednn::desc(dtype, shape, layout);
}

class StackedMatmul final : public kernel::Kernel {
 public:
  StackedMatmul(kernel::Prepare& p, const Problem& q) {
    const DType dtype = p.in("x").dtype;
    const auto x = matrices(dtype, q.x_batch, q.rows, q.inner, q.transpose_x);
    const auto y = matrices(dtype, q.y_batch, q.inner, q.columns, q.transpose_y);
    const auto out = matrices(dtype, q.batch, q.rows, q.columns);
    dnnl::primitive_attr attr = onednn::attributes();
    const auto alpha = p.attr<float>("alpha");
    if (alpha != 1.0f) attr.set_output_scales(0, {alpha});
    product_ = onednn::guarded(p.op(), [&] {
      return onednn::Primitive(p,
                               dnnl::matmul::primitive_desc({x, y, out}, attr, onednn::engine()));
    });
    product_.arg(DNNL_ARG_SRC, p.input("x"), x)
        .arg(DNNL_ARG_WEIGHTS, p.input("y"), y)
        .arg(DNNL_ARG_DST, p.output("out"), out);
  }
  void run(const kernel::Run& r) override { product_.run(r); }
  std::string_view implementation() const override { return product_.implementation(); }

 private:
  onednn::Primitive product_;
};

std::unique_ptr<kernel::Kernel> make_stacked(kernel::Prepare& p) {
  Problem q = problem(p);
  simplify(q);
  return std::make_unique<StackedMatmul>(p, q);
}

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  Problem q = problem(p);
  simplify(q);
  if (q.batch.numel() == 1) return std::make_unique<Matmul>(p, q);
  const bool native = p.in("x").dtype == bf16 && multiplies_bf16();
  return native ? make_stacked(p) : also_half<make_stacked>(p);
}

FLEETX_OP(matmul)
    .input("x")
    .input("y")
    .output("out")
    .attr("transpose_x", false)
    .attr("transpose_y", false)
    .attr("alpha", 1.0)
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel(make);

}  // namespace
}  // namespace fleetx::ops
