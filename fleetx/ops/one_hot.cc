// one_hot: out[.., j] = 1 where j == x[..], else 0; out.shape = x.shape + [depth]. An id outside
// [0, depth) is an error. No gradient.
#include "fleetx/ops/lib/rows.h"
#include "fleetx/ops/lib/strided_copy.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  check_ids(c, "x");
  const auto depth = c.attr<int64_t>("depth");
  c.check(depth > 0, "depth must be positive, got ", depth);
  Shape shape = c.in("x").shape;
  shape.push_back(depth);
  c.out("out") = {c.attr<DType>("dtype"), shape, ir::VarKind::kDense, -1};
}

class OneHotKernel final : public kernel::Kernel {
 public:
  explicit OneHotKernel(kernel::Prepare& p)
      : x_(p, "x", p.attr<int64_t>("depth"), "classes (depth)"),
        out_(p.output("out")),
        depth_(p.attr<int64_t>("depth")),
        dtype_(p.out("out").dtype),
        bytes_(p.out("out").bytes()) {}

  void run(const kernel::Run& r) override {
    const Ids ids = x_.checked(r);
    zero_fill(r.raw(out_), bytes_);
    with_type(dtype_, [&](auto zero) {
      using T = decltype(zero);
      T* out = r.out<T>(out_);
      for (int64_t i = 0; i < x_.count(); ++i) out[i * depth_ + ids(i)] = static_cast<T>(1);
    });
  }

 private:
  IdInput x_;
  kernel::Slot out_;
  int64_t depth_;
  DType dtype_;
  size_t bytes_;
};

FLEETX_OP(one_hot)
    .input("x")
    .output("out")
    .required_attr("depth", ir::AttrType::kInt)
    .attr("dtype", "f32")
    .infer(infer)
    .kernel<OneHotKernel>();

}  // namespace
}  // namespace fleetx::ops
