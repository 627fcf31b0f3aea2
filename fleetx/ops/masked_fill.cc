// masked_fill: out = value where mask is true, else x. mask (bool) has the shape of x, or fewer
// dimensions or ones where it is repeated. Any dtype. dx = dout, zero where mask is true.
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/copy_kernel.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  const Shape &x = c.in("x").shape, &mask = c.in("mask").shape;
  bool fits = c.in("mask").dtype == boolean && mask.rank() <= x.rank();
  for (int d = 1; fits && d <= mask.rank(); ++d) {
    const int64_t size = mask[mask.rank() - d];
    fits = size == 1 || size == x[x.rank() - d];
  }
  c.check(fits, c.show("mask"), ", ", c.show("x"),
          "; mask must be bool and repeat to the shape of x");
  c.out("out") = c.in("x");
}

void grad(ir::Grad& g) {
  g.set("x", g.op("masked_fill", {{"x", g.dout("out")}, {"mask", g.in("mask")}}, {{"value", 0.0}},
                  {{"out", g.dx("x")}}));
}

class MaskedFillKernel final : public kernel::Kernel {
 public:
  explicit MaskedFillKernel(kernel::Prepare& p)
      : x_(p.input("x")),
        mask_(p.input("mask")),
        out_(p.output("out")),
        dtype_(p.in("x").dtype),
        value_(p.attr<double>("value")),
        shape_(p.in("x").shape.rank() == 0 ? Shape{1} : p.in("x").shape),
        width_(shape_.back()),
        rows_(width_ == 0 ? 0 : shape_.numel() / width_) {
    const Shape& mask = p.in("mask").shape;
    const auto strides = strides_of(mask);
    for (int d = 0; d < shape_.rank(); ++d) {
      const int at = d - (shape_.rank() - mask.rank());
      strides_.push_back(at < 0 || mask[at] == 1 ? 0 : strides[static_cast<size_t>(at)]);
    }
  }

  void run(const kernel::Run& r) override {
    with_type(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* x = r.in<T>(x_);
      const bool* mask = r.in<bool>(mask_);
      T* out = r.out<T>(out_);
      const T value = static_cast<T>(value_);
      const int64_t width = width_, step = strides_.back();
      parallel_for(rows_, (1 << 14) / (width + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const bool* hide = mask + place(row);
          for (int64_t j = 0, at = row * width; j < width; ++j, ++at)
            out[at] = hide[j * step] ? value : x[at];
        }
      });
    });
  }

 private:
  // The element of mask where row `row` begins.
  int64_t place(int64_t row) const {
    int64_t out = 0;
    for (int d = shape_.rank() - 2; d >= 0; row /= shape_[d], --d)
      out += row % shape_[d] * strides_[static_cast<size_t>(d)];
    return out;
  }

  kernel::Slot x_, mask_, out_;
  DType dtype_;
  double value_;
  Shape shape_;
  int64_t width_, rows_;
  std::vector<int64_t> strides_;  // of mask, zero where it is repeated
};

FLEETX_OP(masked_fill)
    .input("x")
    .input("mask")
    .output("out")
    .attr("value", 0.0)
    .infer(infer)
    .grad(grad)
    .kernel<MaskedFillKernel>()
    .in_place("out", "x");

}  // namespace
}  // namespace fleetx::ops
