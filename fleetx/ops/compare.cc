// Comparisons and logic, with broadcasting as in elementwise.cc; out is bool. No gradients.
//   equal not_equal less_than less_equal greater_than greater_equal     numbers of one dtype, bool
//   logical_and logical_or logical_xor (x, y), logical_not (x)          bool
#include <functional>

#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/broadcast.h"
#include "fleetx/ops/lib/in_f32.h"

namespace fleetx::ops {
namespace {

void infer_compare(ir::Infer& c) {
  const DType dtype = c.in("x").dtype;
  c.check(c.in("y").dtype == dtype, c.show("x"), ", but ", c.show("y"));
  c.out("out") = {boolean, broadcast_shape(c)};
}

void infer_logical(ir::Infer& c) {
  c.check(c.in("x").dtype == boolean, c.show("x"), "; expected bool");
  c.check(c.in("y").dtype == boolean, c.show("y"), "; expected bool");
  c.out("out") = {boolean, broadcast_shape(c)};
}

void infer_not(ir::Infer& c) {
  c.check(c.in("x").dtype == boolean, c.show("x"), "; expected bool");
  c.out("out") = c.in("x");
}

template <class F, class T>
class CompareKernel final : public kernel::Kernel {
 public:
  explicit CompareKernel(kernel::Prepare& p)
      : x_(p.input("x")),
        y_(p.input("y")),
        out_(p.output("out")),
        walk_(p.out("out").shape, p.in("x").shape, p.in("y").shape, p.attr<int64_t>("axis"),
              Layout::plain()) {}

  void run(const kernel::Run& r) override {
    walk_.run(F{}, r.in<T>(x_), r.in<T>(y_), r.out<bool>(out_));
  }

 private:
  kernel::Slot x_, y_, out_;
  Broadcast walk_;
};

class NotKernel final : public kernel::Kernel {
 public:
  explicit NotKernel(kernel::Prepare& p)
      : x_(p.input("x")), out_(p.output("out")), n_(p.in("x").numel()) {}

  void run(const kernel::Run& r) override {
    const bool* x = r.in<bool>(x_);
    bool* out = r.out<bool>(out_);
    for (int64_t i = 0; i < n_; ++i) out[i] = !x[i];
  }

 private:
  kernel::Slot x_, out_;
  int64_t n_;
};

template <class F>
std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  switch (p.in("x").dtype) {
    case DType::kF64: return std::make_unique<CompareKernel<F, double>>(p);
    case DType::kI32: return std::make_unique<CompareKernel<F, int32_t>>(p);
    case DType::kI64: return std::make_unique<CompareKernel<F, int64_t>>(p);
    case DType::kU8:
    case DType::kBool: return std::make_unique<CompareKernel<F, uint8_t>>(p);
    default: return std::make_unique<CompareKernel<F, float>>(p);
  }
}

template <class F>
std::unique_ptr<kernel::Kernel> make_logical(kernel::Prepare& p) {
  return std::make_unique<CompareKernel<F, uint8_t>>(p);
}

ir::OpRegistrar compare(const char* type, std::unique_ptr<kernel::Kernel> (*make)(kernel::Prepare&),
                        void (*infer)(ir::Infer&)) {
  ir::OpRegistrar op(type);
  op.input("x").input("y").output("out").attr("axis", -1).infer(infer).kernel(make);
  return op;
}

const ir::RegisterOp ops[] = {
    compare("equal", also_half<make<std::equal_to<>>>, infer_compare),
    compare("not_equal", also_half<make<std::not_equal_to<>>>, infer_compare),
    compare("less_than", also_half<make<std::less<>>>, infer_compare),
    compare("less_equal", also_half<make<std::less_equal<>>>, infer_compare),
    compare("greater_than", also_half<make<std::greater<>>>, infer_compare),
    compare("greater_equal", also_half<make<std::greater_equal<>>>, infer_compare),
    compare("logical_and", make_logical<std::bit_and<>>, infer_logical),
    compare("logical_or", make_logical<std::bit_or<>>, infer_logical),
    compare("logical_xor", make_logical<std::bit_xor<>>, infer_logical),
};

FLEETX_OP(logical_not)
    .input("x")
    .output("out")
    .infer(infer_not)
    .kernel<NotKernel>()
    .in_place("out", "x");

}  // namespace
}  // namespace fleetx::ops
