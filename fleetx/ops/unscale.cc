// unscale: out = x / scale in f32, what mixed precision does to a gradient of a scaled loss. x is
// f32, bf16 or f16, or sparse rows of f32; scale is f32[1]. finite, where it is asked for: whether
// out has neither NaN nor infinity, bool[1]. One sweep does all three: the conversion of a 16-bit
// gradient, the division and the check. No gradient.
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const ir::TensorType& x = c.in("x");
  c.check(x.dtype == f32 || (x.kind == ir::VarKind::kDense && (x.dtype == bf16 || x.dtype == f16)),
          c.show("x"), "; expected f32, bf16 or f16, or sparse rows of f32");
  c.check(c.in("scale").dtype == f32 && c.in("scale").shape == Shape{1}, c.show("scale"),
          "; expected f32[1]");
  c.out("out") = x;
  c.out("out").dtype = f32;
  if (c.out_count("finite") > 0) c.out("finite") = {boolean, {1}};
}

// Exponents of all ones mark what is not finite; looking at bits is the same in every float mode.
constexpr uint32_t kExponent = 0x7f800000u;

template <class T>
bool divide(const T* x, float inverse, float* out, int64_t n) {
  uint32_t bad = 0;
  uint32_t* result = &bad;
  vectorized([=] {
    uint32_t any = 0;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const float value = static_cast<float>(x[i]) * inverse;
      out[i] = value;
      any |= static_cast<uint32_t>((std::bit_cast<uint32_t>(value) & kExponent) == kExponent);
    }
    *result = any;
  });
  return bad == 0;
}

template <class T>
bool divide_all(const T* x, float inverse, float* out, int64_t n) {
  bool finite = true;
  parallel_for(n, 1 << 15, [&](int64_t begin, int64_t end) {
    if (!divide(x + begin, inverse, out + begin, end - begin)) {
#pragma omp atomic write
      finite = false;
    }
  });
  return finite;
}

template <class T>
class DenseKernel final : public kernel::Kernel {
 public:
  explicit DenseKernel(kernel::Prepare& p)
      : x_(p.input_as_is("x")),
        scale_(p.input("scale")),
        out_(p.output("out", 0, p.in("x").layout)),
        n_(p.in("x").stored()) {
    if (p.has_out("finite")) finite_ = p.output("finite");
  }

  void run(const kernel::Run& r) override {
    const bool finite =
        divide_all(r.in<T>(x_), 1.0f / *r.in<float>(scale_), r.out<float>(out_), n_);
    if (finite_) *r.out<bool>(finite_) = finite;
  }

 private:
  kernel::Slot x_, scale_, out_, finite_;
  int64_t n_;
};

class SparseKernel final : public kernel::Kernel {
 public:
  explicit SparseKernel(kernel::Prepare& p)
      : x_(p.input("x")),
        scale_(p.input("scale")),
        out_(p.output("out")),
        capacity_(p.in("x").rows),
        width_(p.in("x").shape.numel(1, p.in("x").shape.rank())) {
    if (p.has_out("finite")) finite_ = p.output("finite");
  }

  void run(const kernel::Run& r) override {
    const kernel::SparseRows x = r.rows(x_, capacity_), out = r.rows(out_, capacity_);
    const int64_t rows = *x.count;
    if (x.ids != out.ids) std::copy(x.ids, x.ids + rows, out.ids);
    *out.count = rows;
    const bool finite =
        divide_all(x.values, 1.0f / *r.in<float>(scale_), out.values, rows * width_);
    if (finite_) *r.out<bool>(finite_) = finite;
  }

 private:
  kernel::Slot x_, scale_, out_, finite_;
  int64_t capacity_, width_;
};

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  if (p.in("x").kind == ir::VarKind::kSparseRows) return std::make_unique<SparseKernel>(p);
  switch (p.in("x").dtype) {
    case bf16: return std::make_unique<DenseKernel<BFloat16>>(p);
    case f16: return std::make_unique<DenseKernel<Half>>(p);
    default: return std::make_unique<DenseKernel<float>>(p);
  }
}

FLEETX_OP(unscale)
    .input("x")
    .input("scale")
    .output("out")
    .output("finite", ir::Arity::kOptional)
    .infer(infer)
    .kernel(make)
    .in_place("out", "x");

}  // namespace
}  // namespace fleetx::ops
