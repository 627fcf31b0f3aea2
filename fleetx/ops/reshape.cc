// The same elements in the same order under another shape:
//   reshape       shape: 0 keeps the dimension at that place, one -1 takes what is left
//   reshape_by    as reshape, but `shape` may name lengths of other variables: -2 - i is the length
//                 along axes[i] of lengths[i]
//   reshape_like  the shape of `like`
//   flatten       [d0*..*d(axis-1), d(axis)*..]
//   flatten_range dimensions start..stop (both included) become one
//   squeeze       drops the given axes of size 1; no axes: every dimension of size 1
//   unsqueeze     puts dimensions of size 1 at the given places of the result
// dx = dout under the shape of x. Row-major memory; the plan lets out share the memory of x.
#include <cstring>

#include "fleetx/base/threads.h"
#include "fleetx/ir/example.h"
#include "fleetx/ops/lib/copy_kernel.h"

namespace fleetx::ops {
namespace {

// `unknown`: stands for a length of `shape` that is taken from another variable and known only when
// the op runs (-1: none is). What is left for -1 is then as unknown.
void resolve_shape(ir::Infer& c, Shape shape, int64_t unknown = -1) {
  const ir::TensorType& x = c.in("x");
  int rest = -1;
  int64_t given = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == -1) {
      c.check(rest < 0, "shape ", shape, " has more than one -1");
      rest = d;
      continue;
    }
    c.check(shape[d] >= 0, "shape ", shape, " has dimension ", shape[d], " at ", d);
    if (shape[d] == 0) {
      c.check(d < x.shape.rank(), c.show("x"), "; shape ", shape, " keeps dimension ", d,
              ", which x does not have");
      shape[d] = x.shape[d];
    }
    given *= shape[d];
  }
  const int64_t total = x.shape.numel();
  if (rest >= 0) shape[rest] = given == 0 ? 0 : total / given;
  if (rest >= 0 && unknown >= 0) shape[rest] = unknown;
  c.check(c.by_example() || shape.numel() == total, c.show("x"), " with ", total,
          " elements; cannot become ", c.attr<Shape>("shape"));
  c.out("out") = {x.dtype, shape, ir::VarKind::kDense, -1};
}

void infer_reshape(ir::Infer& c) { resolve_shape(c, c.attr<Shape>("shape")); }

void infer_reshape_by(ir::Infer& c) {
  auto shape = c.attr<Shape>("shape");
  const auto axes = c.attr<ir::Ints>("axes");
  c.check(axes.size() == c.count("lengths"), "axes has ", axes.size(), " entries for ",
          c.count("lengths"), " lengths");
  int64_t unknown = -1;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] >= -1) continue;
    const auto i = static_cast<size_t>(-2 - shape[d]);
    c.check(i < axes.size(), "shape ", shape, " names length ", i, " of ", axes.size());
    const Shape& other = c.in("lengths", i).shape;
    const int axis = normalize_axis(axes[i], other.rank());
    c.check(axis >= 0 && axis < other.rank(), c.show("lengths", i), "; it has no axis ", axes[i]);
    shape[d] = other[axis];
    if (ir::is_example(c, shape[d])) unknown = shape[d];
  }
  resolve_shape(c, shape, unknown);
}

void infer_reshape_like(ir::Infer& c) {
  const Shape& shape = c.in("like").shape;
  c.check(c.by_example() || shape.numel() == c.in("x").shape.numel(), c.show("x"), "; ",
          c.show("like"), ": must have as many elements");
  c.out("out") = {c.in("x").dtype, shape, ir::VarKind::kDense, -1};
}

void infer_flatten(ir::Infer& c) {
  const Shape& x = c.in("x").shape;
  const int axis = normalize_axis(c.attr<int64_t>("axis"), x.rank());
  c.check(axis >= 0 && axis <= x.rank(), c.show("x"), "; axis must be in [0, ", x.rank(), "], got ",
          c.attr<int64_t>("axis"));
  c.out("out") = {
      c.in("x").dtype, {x.numel(0, axis), x.numel(axis, x.rank())}, ir::VarKind::kDense, -1};
}

void infer_flatten_range(ir::Infer& c) {
  const Shape& x = c.in("x").shape;
  Shape shape;
  if (x.rank() == 0) {
    shape = {1};
  } else {
    const int start = checked_axis(c, "x", c.attr<int64_t>("start"), x.rank());
    const int stop = checked_axis(c, "x", c.attr<int64_t>("stop"), x.rank());
    c.check(start <= stop, "start ", start, " lies after stop ", stop);
    for (int d = 0; d < start; ++d) shape.push_back(x[d]);
    shape.push_back(x.numel(start, stop + 1));
    for (int d = stop + 1; d < x.rank(); ++d) shape.push_back(x[d]);
  }
  c.out("out") = {c.in("x").dtype, shape, ir::VarKind::kDense, -1};
}

// Marks the axes within `rank` dimensions.
std::vector<bool> marked(const ir::Infer& c, int rank) {
  std::vector<bool> out(static_cast<size_t>(rank));
  for (const int64_t axis : c.attr<ir::Ints>("axes")) {
    const auto d = static_cast<size_t>(checked_axis(c, "x", axis, rank));
    c.check(!out[d], "axis ", axis, " is named twice");
    out[d] = true;
  }
  return out;
}

void infer_squeeze(ir::Infer& c) {
  const Shape& x = c.in("x").shape;
  const bool all = c.attr<ir::Ints>("axes").empty();
  // Otherwise a batch of one would lose its dimension.
  c.check(!all || !c.by_example(), c.show("x"), "; name the axes where a dimension is unknown");
  const std::vector<bool> drop = marked(c, x.rank());
  Shape shape;
  for (int d = 0; d < x.rank(); ++d) {
    const bool named = drop[static_cast<size_t>(d)];
    c.check(!named || x[d] == 1, c.show("x"), "; axis ", d, " must have size 1");
    if (!named && !(all && x[d] == 1)) shape.push_back(x[d]);
  }
  c.out("out") = {c.in("x").dtype, shape, ir::VarKind::kDense, -1};
}

void infer_unsqueeze(ir::Infer& c) {
  const Shape& x = c.in("x").shape;
  const int rank = x.rank() + static_cast<int>(c.attr<ir::Ints>("axes").size());
  const std::vector<bool> added = marked(c, rank);
  Shape shape;
  int next = 0;
  for (int d = 0; d < rank; ++d) shape.push_back(added[static_cast<size_t>(d)] ? 1 : x[next++]);
  c.out("out") = {c.in("x").dtype, shape, ir::VarKind::kDense, -1};
}

// The shape of x is written into the gradient op, so that x need not be kept. With several unknown
// dimensions that is possible only where the forward op kept them in place.
void grad_by_shape(ir::Grad& g) {
  const ir::Var x = g.in("x");
  ir::Ints shape = x.shape().dims();
  const auto given = g.attrs().find("shape");
  const ir::Ints forward = given == g.attrs().end() ? ir::Ints{} : given->second.as<ir::Ints>();
  int unknown = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] >= 0) continue;
    if (d < forward.size() && forward[d] == 0)
      shape[d] = 0;
    else
      ++unknown;
  }
  if (unknown > 1)
    g.set("x", g.op("reshape_like", {{"x", g.dout("out")}, {"like", x}}, {}, {{"out", g.dx("x")}}));
  else
    g.set("x", g.op("reshape", {{"x", g.dout("out")}}, {{"shape", shape}}, {{"out", g.dx("x")}}));
}

void grad_squeeze(ir::Grad& g) {
  auto axes = g.attr<ir::Ints>("axes");
  const Shape& x = g.in("x").shape();
  for (int d = 0; d < x.rank() && g.attr<ir::Ints>("axes").empty(); ++d)
    if (x[d] == 1) axes.push_back(d);
  g.set("x", g.op("unsqueeze", {{"x", g.dout("out")}}, {{"axes", axes}}, {{"out", g.dx("x")}}));
}

void grad_unsqueeze(ir::Grad& g) {
  const auto axes = g.attr<ir::Ints>("axes");
  if (axes.empty()) return g.set("x", g.dout("out"));
  g.set("x", g.op("squeeze", {{"x", g.dout("out")}}, {{"axes", axes}}, {{"out", g.dx("x")}}));
}

class ViewKernel final : public kernel::Kernel {
 public:
  explicit ViewKernel(kernel::Prepare& p)
      : x_(p.input("x")),
        out_(p.output("out")),
        bytes_(p.out("out").bytes()),
        copy_(1, {{static_cast<int64_t>(bytes_), 1, 1}}) {}

  void run(const kernel::Run& r) override {
    if (r.raw(out_) != r.raw(x_)) copy_.run(r.raw(x_), r.raw(out_));
  }
  std::string_view implementation() const override { return "shares memory"; }

 private:
  kernel::Slot x_, out_;
  size_t bytes_;
  StridedCopy copy_;
};

ir::OpRegistrar view(const char* type, void (*infer)(ir::Infer&), void (*grad)(ir::Grad&)) {
  ir::OpRegistrar op(type);
  op.input("x").output("out").infer(infer).grad(grad).kernel<ViewKernel>().view("out", "x");
  return op;
}

const ir::RegisterOp reshape =
    view("reshape", infer_reshape, grad_by_shape).required_attr("shape", ir::AttrType::kInts);
const ir::RegisterOp reshape_by = view("reshape_by", infer_reshape_by, grad_by_shape)
                                      .input("lengths", ir::Arity::kMany)
                                      .required_attr("shape", ir::AttrType::kInts)
                                      .required_attr("axes", ir::AttrType::kInts)
                                      .shape_only("lengths");
const ir::RegisterOp reshape_like =
    view("reshape_like", infer_reshape_like, grad_by_shape).input("like").shape_only("like");
const ir::RegisterOp flatten = view("flatten", infer_flatten, grad_by_shape).attr("axis", 1);
const ir::RegisterOp flatten_range =
    view("flatten_range", infer_flatten_range, grad_by_shape).attr("start", 0).attr("stop", -1);
const ir::RegisterOp squeeze =
    view("squeeze", infer_squeeze, grad_squeeze).attr("axes", ir::Ints{});
const ir::RegisterOp unsqueeze =
    view("unsqueeze", infer_unsqueeze, grad_unsqueeze).required_attr("axes", ir::AttrType::kInts);

}  // namespace
}  // namespace fleetx::ops
