// piecewise: values[i] for the number i of boundaries that x has reached (x >= boundary): a table
// that a schedule looks up. x has one element of any number type; out is f32[1].
#include <algorithm>

#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const auto boundaries = c.attr<ir::Floats>("boundaries"), values = c.attr<ir::Floats>("values");
  c.check(c.in("x").shape.numel() == 1, "x must have one element, but ", c.show("x"));
  c.check(size_of(c.in("x").dtype) > 2, c.show("x"), "; 16 bits do not hold a step");
  c.check(values.size() == boundaries.size() + 1,
          "there must be one value more than boundaries, got ", values.size(), " values and ",
          boundaries.size(), " boundaries");
  c.check(std::is_sorted(boundaries.begin(), boundaries.end()), "boundaries must ascend");
  c.out("out") = {DType::kF32, {1}};
}

template <class T>
class Piecewise final : public kernel::Kernel {
 public:
  explicit Piecewise(kernel::Prepare& p)
      : boundaries_(p.attr<ir::Floats>("boundaries")),
        values_(p.attr<ir::Floats>("values")),
        x_(p.input("x")),
        out_(p.output("out")) {}

  void run(const kernel::Run& r) override {
    const auto x = static_cast<double>(*r.in<T>(x_));
    const auto reached = std::upper_bound(boundaries_.begin(), boundaries_.end(), x);
    *r.out<float>(out_) =
        static_cast<float>(values_[static_cast<size_t>(reached - boundaries_.begin())]);
  }

 private:
  ir::Floats boundaries_, values_;
  kernel::Slot x_, out_;
};

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  switch (p.in("x").dtype) {
    case DType::kF32: return std::make_unique<Piecewise<float>>(p);
    case DType::kF64: return std::make_unique<Piecewise<double>>(p);
    case DType::kI32: return std::make_unique<Piecewise<int32_t>>(p);
    case DType::kI64: return std::make_unique<Piecewise<int64_t>>(p);
    default:
      fail(Error::Kind::kUnsupported, str(ir::describe(p.op()), "no kernel for ", p.in("x").dtype));
  }
}

FLEETX_OP(piecewise)
    .input("x")
    .output("out")
    .required_attr("boundaries", ir::AttrType::kFloats)
    .required_attr("values", ir::AttrType::kFloats)
    .infer(infer)
    .kernel(make);

}  // namespace
}  // namespace fleetx::ops
