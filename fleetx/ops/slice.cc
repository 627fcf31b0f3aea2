// slice: on each of `axes` the entries from start up to (not including) end, every step-th, as in
// Python: negative numbers count from the end, numbers out of range are cut, a step may be
// negative. Any dtype. slice_grad: zeros but for dx[slice] = dout. It takes the lengths of x from
// `dims`; where one is unknown before the plan it looks at x.
#include "fleetx/ops/lib/copy_kernel.h"

namespace fleetx::ops {
namespace {

struct Range {
  int64_t start, step, length;
};

Range resolve(int64_t start, int64_t end, int64_t step, int64_t n) {
  // The places a range may begin and end at: -1 is "before the first" for a negative step.
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  start = std::clamp(start < 0 ? start + n : start, low, high);
  end = std::clamp(end < 0 ? end + n : end, low, high);
  const int64_t span = step > 0 ? end - start : start - end;
  const int64_t stride = step > 0 ? step : -step;
  return {start, step, std::max<int64_t>(0, (span + stride - 1) / stride)};
}

// Ranges on all dimensions of the whole; `attrs` is an Infer or a Prepare.
template <class Attrs>
std::vector<Range> ranges(const Attrs& attrs, const Shape& whole) {
  const auto axes = attrs.template attr<ir::Ints>("axes");
  const auto starts = attrs.template attr<ir::Ints>("starts");
  const auto ends = attrs.template attr<ir::Ints>("ends");
  const auto steps = attrs.template attr<ir::Ints>("steps");
  std::vector<Range> out;
  for (const int64_t n : whole) out.push_back({0, 1, n});
  for (size_t i = 0; i < axes.size(); ++i) {
    const int d = normalize_axis(axes[i], whole.rank());
    out[static_cast<size_t>(d)] =
        resolve(starts[i], ends[i], steps.empty() ? 1 : steps[i], whole[d]);
  }
  return out;
}

void check_attrs(const ir::Infer& c, std::string_view slot) {
  const auto axes = c.attr<ir::Ints>("axes"), starts = c.attr<ir::Ints>("starts"),
             ends = c.attr<ir::Ints>("ends"), steps = c.attr<ir::Ints>("steps");
  c.check(starts.size() == axes.size() && ends.size() == axes.size() &&
              (steps.empty() || steps.size() == axes.size()),
          "axes ", Shape(axes), ", starts ", Shape(starts), ", ends ", Shape(ends), ", steps ",
          Shape(steps), " must have one entry per axis");
  std::vector<bool> seen(static_cast<size_t>(c.in(slot).shape.rank()));
  for (const int64_t axis : axes) {
    const int d = checked_axis(c, slot, axis, c.in(slot).shape.rank());
    c.check(!seen[static_cast<size_t>(d)], "axes ", Shape(axes), " name axis ", d, " twice");
    seen[static_cast<size_t>(d)] = true;
  }
  for (const int64_t step : steps) c.check(step != 0, "a step is 0");
}

void infer(ir::Infer& c) {
  check_attrs(c, "x");
  const Shape& x = c.in("x").shape;
  Shape shape;
  for (const Range& range : ranges(c, x)) {
    c.check(range.length > 0 || x[shape.rank()] == 0, c.show("x"), "; nothing is left of axis ",
            shape.rank());
    shape.push_back(range.length);
  }
  c.out("out") = {c.in("x").dtype, shape, ir::VarKind::kDense, -1};
}

void grad(ir::Grad& g) {
  const ir::Var x = g.in("x");
  ir::Attrs attrs = g.attrs();
  ir::Ints dims;
  bool known = true;
  for (const int64_t axis : g.attr<ir::Ints>("axes")) {
    dims.push_back(x.shape()[normalize_axis(axis, x.shape().rank())]);
    known = known && dims.back() >= 0;
  }
  attrs.insert_or_assign("dims", dims);
  g.set("x", g.op("slice_grad", {{"dout", g.dout("out")}, {"x", known ? ir::Var() : x}}, attrs,
                  {{"dx", g.dx("x")}}));
}

void infer_grad(ir::Infer& c) {
  check_attrs(c, "dout");
  const ir::TensorType& dout = c.in("dout");
  const auto axes = c.attr<ir::Ints>("axes"), dims = c.attr<ir::Ints>("dims");
  c.check(dims.size() == axes.size(), "dims ", Shape(dims), " must have one entry per axis");
  Shape shape = dout.shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int d = normalize_axis(axes[i], shape.rank());
    c.check(dims[i] >= 0 || c.has("x"), "x must be given where its size on axis ", d,
            " is not known");
    shape[d] = dims[i] >= 0 ? dims[i] : c.in("x").shape[d];
  }
  const std::vector<Range> all = ranges(c, shape);
  for (int d = 0; d < shape.rank() && !c.by_example(); ++d)
    c.check(all[static_cast<size_t>(d)].length == dout.shape[d], c.show("dout"), "; axis ", d,
            " must have ", all[static_cast<size_t>(d)].length, " entries");
  c.out("dx") = {dout.dtype, shape, ir::VarKind::kDense, -1};
}

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  const Shape& x = p.in("x").shape;
  const auto from = strides_of(x), to = strides_of(p.out("out").shape);
  const std::vector<Range> all = ranges(p, x);
  std::vector<StridedCopy::Dim> dims;
  int64_t start = 0;
  for (size_t d = 0; d < all.size(); ++d) {
    dims.push_back({all[d].length, from[d] * all[d].step, to[d]});
    start += from[d] * all[d].start;
  }
  return std::make_unique<CopyKernel>(p, dims, start);
}

class SliceGradKernel final : public kernel::Kernel {
 public:
  explicit SliceGradKernel(kernel::Prepare& p)
      : dout_(p.input("dout")), dx_(p.output("dx")), bytes_(p.out("dx").bytes()) {
    const Shape& x = p.out("dx").shape;
    const size_t element = size_of(p.in("dout").dtype);
    const auto from = strides_of(p.in("dout").shape), to = strides_of(x);
    const std::vector<Range> all = ranges(p, x);
    std::vector<StridedCopy::Dim> dims;
    for (size_t d = 0; d < all.size(); ++d) {
      dims.push_back({all[d].length, from[d], to[d] * all[d].step});
      start_ += to[d] * all[d].start * static_cast<int64_t>(element);
    }
    copy_ = StridedCopy(element, dims);
  }

  void run(const kernel::Run& r) override {
    zero_fill(r.raw(dx_), bytes_);
    copy_.run(r.raw(dout_), r.out<char>(dx_) + start_);
  }
  std::string_view implementation() const override { return copy_.kind(); }

 private:
  kernel::Slot dout_, dx_;
  size_t bytes_;
  int64_t start_ = 0;
  StridedCopy copy_;
};

FLEETX_OP(slice)
    .input("x")
    .output("out")
    .required_attr("axes", ir::AttrType::kInts)
    .required_attr("starts", ir::AttrType::kInts)
    .required_attr("ends", ir::AttrType::kInts)
    .attr("steps", ir::Ints{})
    .infer(infer)
    .grad(grad)
    .kernel(make);

FLEETX_OP(slice_grad)
    .input("dout")
    .input("x", ir::Arity::kOptional)
    .output("dx")
    .required_attr("axes", ir::AttrType::kInts)
    .required_attr("starts", ir::AttrType::kInts)
    .required_attr("ends", ir::AttrType::kInts)
    .attr("steps", ir::Ints{})
    .required_attr("dims", ir::AttrType::kInts)
    .infer(infer_grad)
    .shape_only("x")
    .kernel<SliceGradKernel>();

}  // namespace
}  // namespace fleetx::ops
