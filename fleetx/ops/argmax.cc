// argmax, argmin: where the largest (smallest) entry along an axis stands; the first of equal
// ones, and the first NaN if there is one. out is x without the axis (size 1 with keepdim, and [1]
// where nothing else is left); dtype i64 or i32. f32, f64, i32, i64. No gradient.
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/copy_kernel.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const ir::TensorType& x = c.in("x");
  const auto dtype = c.attr<DType>("dtype");
  c.check(x.dtype == f32 || x.dtype == f64 || x.dtype == i32 || x.dtype == i64, c.show("x"),
          "; must be f32, f64, i32 or i64");
  c.check(dtype == i64 || dtype == i32, "dtype must be i64 or i32, got ", dtype);
  const int axis = checked_axis(c, "x");
  c.check(x.shape[axis] > 0, c.show("x"), "; axis ", axis, " is empty");
  Shape shape;
  for (int d = 0; d < x.shape.rank(); ++d) {
    if (d != axis) shape.push_back(x.shape[d]);
    if (d == axis && c.attr<bool>("keepdim")) shape.push_back(1);
  }
  if (shape.rank() == 0) shape = {1};
  c.out("out") = {dtype, shape, ir::VarKind::kDense, -1};
}

template <class T, class Better>
class ArgKernel final : public kernel::Kernel {
 public:
  explicit ArgKernel(kernel::Prepare& p)
      : x_(p.input("x")), out_(p.output("out")), wide_(p.out("out").dtype == i64) {
    const Shape& x = p.in("x").shape;
    const int axis = normalize_axis(p.attr<int64_t>("axis"), x.rank());
    n_ = x[axis];
    outer_ = x.numel(0, axis);
    inner_ = x.numel(axis + 1, x.rank());
  }

  void run(const kernel::Run& r) override {
    const T* x = r.in<T>(x_);
    const int64_t n = n_, inner = inner_;
    parallel_for(outer_ * inner, (1 << 14) / n + 1, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const T* from = x + line / inner * n * inner + line % inner;
        T best = from[0];
        int64_t place = 0;
        // The first NaN ends the search: nothing is better.
        for (int64_t i = 1; i < n && best == best; ++i) {
          const T value = from[i * inner];
          if (!Better()(value, best) && value == value) continue;
          best = value;
          place = i;
        }
        if (wide_)
          r.out<int64_t>(out_)[line] = place;
        else
          r.out<int32_t>(out_)[line] = static_cast<int32_t>(place);
      }
    });
  }

 private:
  kernel::Slot x_, out_;
  bool wide_;
  int64_t n_, outer_, inner_;
};

template <template <class> class Better>
std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  switch (p.in("x").dtype) {
    case DType::kF64: return std::make_unique<ArgKernel<double, Better<double>>>(p);
    case DType::kI32: return std::make_unique<ArgKernel<int32_t, Better<int32_t>>>(p);
    case DType::kI64: return std::make_unique<ArgKernel<int64_t, Better<int64_t>>>(p);
    default: return std::make_unique<ArgKernel<float, Better<float>>>(p);
  }
}

ir::OpRegistrar arg(const char* type,
                    std::unique_ptr<kernel::Kernel> (*make_kernel)(kernel::Prepare&)) {
  ir::OpRegistrar op(type);
  op.input("x")
      .output("out")
      .attr("axis", -1)
      .attr("keepdim", false)
      .attr("dtype", "i64")
      .infer(infer)
      .kernel(make_kernel);
  return op;
}

const ir::RegisterOp argmax = arg("argmax", make<std::greater>);
const ir::RegisterOp argmin = arg("argmin", make<std::less>);

}  // namespace
}  // namespace fleetx::ops
