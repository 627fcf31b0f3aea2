// check_finite: out = true if no element of xs is a NaN or infinite; bool [1]. xs are floats, dense
// or sparse, of any shapes and dtypes. No gradient.
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/finite.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  for (size_t i = 0; i < c.count("xs"); ++i)
    c.check(is_float(c.in("xs", i).dtype), c.show("xs", i), "; expected floats");
  c.out("out") = {boolean, {1}};
}

class CheckFiniteKernel final : public kernel::Kernel {
 public:
  explicit CheckFiniteKernel(kernel::Prepare& p) : out_(p.output("out")) {
    for (size_t i = 0; i < p.count("xs"); ++i) {
      const kernel::Desc& x = p.in("xs", i);
      const bool sparse = x.kind == ir::VarKind::kSparseRows;
      xs_.push_back({p.input_as_is("xs", i), x.dtype,
                     sparse ? x.shape.numel(1, x.shape.rank()) : x.stored(), sparse ? x.rows : -1});
    }
  }

  void run(const kernel::Run& r) override {
    bool finite = true;
    for (const Input& x : xs_) finite = finite && is_finite(r, x);
    *r.out<bool>(out_) = finite;
  }

 private:
  struct Input {
    kernel::Slot slot;
    DType dtype;
    int64_t n;         // elements; of one row, where sparse
    int64_t capacity;  // sparse rows; -1: dense
  };

  static bool is_finite(const kernel::Run& r, const Input& x) {
    if (x.capacity >= 0) {
      const kernel::SparseRows rows = r.rows(x.slot, x.capacity);
      return check<uint32_t>(rows.values, *rows.count * x.n, 0x7f800000u);
    }
    switch (x.dtype) {
      case f64: return check<uint64_t>(r.raw(x.slot), x.n, 0x7ff0000000000000u);
      case f16:
      case bf16: return check<uint16_t>(r.raw(x.slot), x.n, exponent_of(x.dtype));
      default: return check<uint32_t>(r.raw(x.slot), x.n, 0x7f800000u);
    }
  }

  template <class Bits>
  static bool check(const void* data, int64_t n, Bits exponent) {
    const auto* x = static_cast<const Bits*>(data);
    bool finite = true;
    parallel_for(n, 1 << 16, [&](int64_t begin, int64_t end) {
      if (!all_finite(x + begin, end - begin, exponent)) {
#pragma omp atomic write
        finite = false;
      }
    });
    return finite;
  }

  kernel::Slot out_;
  std::vector<Input> xs_;
};

FLEETX_OP(check_finite)
    .input("xs", ir::Arity::kMany)
    .output("out")
    .infer(infer)
    .kernel<CheckFiniteKernel>();

}  // namespace
}  // namespace fleetx::ops
