// gather: the entries of x that `index` names on an axis:
//   out.shape = x.shape[:axis] + index.shape + x.shape[axis+1:]
//   dx[.., index[i], ..] += dout[.., i, ..], in order of i.
// gather_nd: the last dimension of index holds the first k coordinates of an entry of x:
//   out.shape = index.shape[:-1] + x.shape[k:];   dx[index[i]] += dout[i].
// Forward any dtype, gradients f32 and f64. The gradients take the size of x from attributes;
// where it is not known before the plan they look at the shape of x.
#include "fleetx/ops/lib/copy_kernel.h"
#include "fleetx/ops/lib/in_f32.h"
#include "fleetx/ops/lib/rows.h"
#include "fleetx/ops/lib/sparse_rows.h"

namespace fleetx::ops {
namespace {

void infer_gather(ir::Infer& c) {
  const Shape &x = c.in("x").shape, &index = c.in("index").shape;
  check_ids(c, "index");
  const int axis = checked_axis(c, "x");
  Shape shape;
  for (int d = 0; d < axis; ++d) shape.push_back(x[d]);
  for (const int64_t n : index) shape.push_back(n);
  for (int d = axis + 1; d < x.rank(); ++d) shape.push_back(x[d]);
  c.out("out") = {c.in("x").dtype, shape, ir::VarKind::kDense, -1};
}

void grad_gather(ir::Grad& g) {
  const ir::Var x = g.in("x");
  const int axis = normalize_axis(g.attr<int64_t>("axis"), x.shape().rank());
  const int64_t size = x.shape()[axis];
  g.set("x",
        g.op("gather_grad",
             {{"index", g.in("index")}, {"dout", g.dout("out")}, {"x", size < 0 ? x : ir::Var()}},
             {{"axis", axis}, {"size", size}}, {{"dx", g.dx("x")}}));
}

void infer_gather_grad(ir::Infer& c) {
  const Shape &dout = c.in("dout").shape, &index = c.in("index").shape;
  const auto axis = c.attr<int>("axis");
  const auto size = c.attr<int64_t>("size");
  c.check(axis >= 0 && axis + index.rank() <= dout.rank(), c.show("dout"), "; axis is ", axis);
  c.check(size >= 0 || c.has("x"), "x must be given where its size is not");
  for (int d = 0; d < index.rank(); ++d)
    c.check(dout[axis + d] == index[d], c.show("dout"), ", ", c.show("index"));
  Shape shape;
  for (int d = 0; d < axis; ++d) shape.push_back(dout[d]);
  shape.push_back(size >= 0 ? size : c.in("x").shape[axis]);
  for (int d = axis + index.rank(); d < dout.rank(); ++d) shape.push_back(dout[d]);
  c.out("dx") = {c.in("dout").dtype, shape, ir::VarKind::kDense, -1};
}

class GatherKernel final : public kernel::Kernel {
 public:
  explicit GatherKernel(kernel::Prepare& p)
      : axis_(normalize_axis(p.attr<int64_t>("axis"), p.in("x").shape.rank())),
        size_(p.in("x").shape[axis_]),
        outer_(p.in("x").shape.numel(0, axis_)),
        index_(p, "index", size_, str("entries on axis ", axis_, " of x")),
        x_(p.input("x")),
        out_(p.output("out")) {
    const Shape& x = p.in("x").shape;
    bytes_ = x.numel(axis_ + 1, x.rank()) * static_cast<int64_t>(size_of(p.in("x").dtype));
  }

  void run(const kernel::Run& r) override {
    const Ids ids = index_.checked(r);
    const char* x = r.in<char>(x_);
    char* out = r.out<char>(out_);
    const int64_t n = index_.count(), size = size_;
    if (outer_ == 1) return copy_rows(ids, n, bytes_, x, out);
    copy_rows([=](int64_t i) { return i / n * size + ids(i % n); }, outer_ * n, bytes_, x, out);
  }

 private:
  int axis_;
  int64_t size_, outer_, bytes_;
  IdInput index_;
  kernel::Slot x_, out_;
};

template <class T>
class GatherGradKernel final : public kernel::Kernel {
 public:
  explicit GatherGradKernel(kernel::Prepare& p)
      : axis_(p.attr<int>("axis")),
        size_(p.out("dx").shape[axis_]),
        outer_(p.out("dx").shape.numel(0, axis_)),
        width_(p.out("dx").shape.numel(axis_ + 1, p.out("dx").shape.rank())),
        bytes_(p.out("dx").bytes()),
        index_(p, "index", size_, str("entries on axis ", axis_, " of x")),
        dout_(p.input("dout")),
        dx_(p.output("dx")) {}

  void run(const kernel::Run& r) override {
    const Ids ids = index_.checked(r);
    zero_fill(r.raw(dx_), bytes_);
    const T* dout = r.in<T>(dout_);
    T* dx = r.out<T>(dx_);
    const int64_t n = index_.count(), width = width_, size = size_;
    if (outer_ == 1) return add_rows(ids, n, width, dout, dx);
    parallel_for(outer_, (1 << 14) / (n * width + 1) + 1, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin * n; i < end * n; ++i) {
        const T* from = dout + i * width;
        T* to = dx + (i / n * size + ids(i % n)) * width;
        for (int64_t j = 0; j < width; ++j) to[j] += from[j];
      }
    });
  }

 private:
  int axis_;
  int64_t size_, outer_, width_;
  size_t bytes_;
  IdInput index_;
  kernel::Slot dout_, dx_;
};

void infer_gather_nd(ir::Infer& c) {
  const Shape &x = c.in("x").shape, &index = c.in("index").shape;
  check_ids(c, "index");
  c.check(index.rank() > 0 && index.back() >= 1 && index.back() <= x.rank(), c.show("index"), ", ",
          c.show("x"), "; the last dimension of index holds 1 to ", x.rank(), " coordinates");
  Shape shape;
  for (int d = 0; d + 1 < index.rank(); ++d) shape.push_back(index[d]);
  for (int d = static_cast<int>(index.back()); d < x.rank(); ++d) shape.push_back(x[d]);
  c.out("out") = {c.in("x").dtype, shape, ir::VarKind::kDense, -1};
}

void grad_gather_nd(ir::Grad& g) {
  const ir::Var x = g.in("x");
  const bool known = x.shape().known();
  g.set("x", g.op("gather_nd_grad",
                  {{"index", g.in("index")}, {"dout", g.dout("out")}, {"x", known ? ir::Var() : x}},
                  {{"shape", known ? x.shape() : Shape()}}, {{"dx", g.dx("x")}}));
}

void infer_gather_nd_grad(ir::Infer& c) {
  const Shape shape = c.has("x") ? c.in("x").shape : c.attr<Shape>("shape");
  const Shape& index = c.in("index").shape;
  const int64_t k = index.rank() > 0 ? index.back() : 0;
  c.check(k >= 1 && k <= shape.rank(), c.show("index"), "; x has shape ", shape);
  c.check(c.by_example() ||
              index.numel(0, index.rank() - 1) * shape.numel(static_cast<int>(k), shape.rank()) ==
                  c.in("dout").shape.numel(),
          c.show("dout"), ", ", c.show("index"), "; x has shape ", shape);
  c.out("dx") = {c.in("dout").dtype, shape, ir::VarKind::kDense, -1};
}

// The coordinates in index as row numbers of x, in scratch memory.
class Coordinates {
 public:
  Coordinates(kernel::Prepare& p, const Shape& x)
      : slot_(p.input("index")),
        wide_(p.in("index").dtype == i64),
        index_(p.in("index").shape),
        x_(x),
        where_(str(ir::describe(p.op()), "index '", p.op().in("index").front(), "': ")),
        k_(index_.back()),
        n_(index_.numel() / k_),
        rows_(p.scratch(static_cast<size_t>(n_) * sizeof(int64_t))) {}

  int64_t count() const { return n_; }
  int64_t width() const { return x_.numel(static_cast<int>(k_), x_.rank()); }
  Ids rows(const kernel::Run& r) const {
    const Ids ids(r.raw(slot_), wide_);
    auto* rows = r.out<int64_t>(rows_);
    for (int64_t i = 0; i < n_; ++i) {
      rows[i] = 0;
      for (int64_t d = 0; d < k_; ++d) {
        const int64_t at = ids(i * k_ + d), size = x_[static_cast<int>(d)];
        check_arg(at >= 0 && at < size, where_, "id ", at, " at ", place_in(index_, i * k_ + d),
                  " is out of range: axis ", d, " of x has ", size, " entries");
        rows[i] = rows[i] * size + at;
      }
    }
    return {rows, true};
  }

 private:
  kernel::Slot slot_;
  bool wide_;
  Shape index_, x_;
  std::string where_;
  int64_t k_, n_;
  kernel::Slot rows_;
};

class GatherNdKernel final : public kernel::Kernel {
 public:
  explicit GatherNdKernel(kernel::Prepare& p)
      : index_(p, p.in("x").shape),
        x_(p.input("x")),
        out_(p.output("out")),
        bytes_(index_.width() * static_cast<int64_t>(size_of(p.in("x").dtype))) {}

  void run(const kernel::Run& r) override {
    copy_rows(index_.rows(r), index_.count(), bytes_, r.in<char>(x_), r.out<char>(out_));
  }

 private:
  Coordinates index_;
  kernel::Slot x_, out_;
  int64_t bytes_;
};

template <class T>
class GatherNdGradKernel final : public kernel::Kernel {
 public:
  explicit GatherNdGradKernel(kernel::Prepare& p)
      : index_(p, p.out("dx").shape),
        dout_(p.input("dout")),
        dx_(p.output("dx")),
        bytes_(p.out("dx").bytes()) {}

  void run(const kernel::Run& r) override {
    const Ids rows = index_.rows(r);
    zero_fill(r.raw(dx_), bytes_);
    add_rows(rows, index_.count(), index_.width(), r.in<T>(dout_), r.out<T>(dx_));
  }

 private:
  Coordinates index_;
  kernel::Slot dout_, dx_;
  size_t bytes_;
};

template <template <class> class K>
std::unique_ptr<kernel::Kernel> make_float(kernel::Prepare& p) {
  if (p.in("dout").dtype == f64) return std::make_unique<K<double>>(p);
  check_arg(p.in("dout").dtype == f32, ir::describe(p.op()), "no kernel for ", p.in("dout").dtype);
  return std::make_unique<K<float>>(p);
}

FLEETX_OP(gather)
    .input("x")
    .input("index")
    .output("out")
    .attr("axis", 0)
    .infer(infer_gather)
    .grad(grad_gather)
    .kernel<GatherKernel>();

FLEETX_OP(gather_grad)
    .input("index")
    .input("dout")
    .input("x", ir::Arity::kOptional)
    .output("dx")
    .attr("axis", 0)
    .attr("size", -1)
    .infer(infer_gather_grad)
    .kernel(also_half<make_float<GatherGradKernel>>)
    .shape_only("x");

FLEETX_OP(gather_nd)
    .input("x")
    .input("index")
    .output("out")
    .infer(infer_gather_nd)
    .grad(grad_gather_nd)
    .kernel<GatherNdKernel>();

FLEETX_OP(gather_nd_grad)
    .input("index")
    .input("dout")
    .input("x", ir::Arity::kOptional)
    .output("dx")
    .attr("shape", ir::Ints{})
    .infer(infer_gather_nd_grad)
    .kernel(also_half<make_float<GatherNdGradKernel>>)
    .shape_only("x");

}  // namespace
}  // namespace fleetx::ops
