// expand: x repeated to `shape`, aligned at the last dimension: a dimension of size 1 grows, -1
// keeps the size, new dimensions stand in front. dx = dout summed to the shape of x.
// tile: x repeated repeats[d] times along each dimension, aligned at the last dimension; missing
// repeats are 1. tile_grad: dx = dout summed over the repetitions, in order.
// Any dtype; gradients f32 and f64.
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/copy_kernel.h"
#include "fleetx/ops/lib/in_f32.h"

namespace fleetx::ops {
namespace {

void infer_expand(ir::Infer& c) {
  const Shape& x = c.in("x").shape;
  Shape shape = c.attr<Shape>("shape");
  const int added = shape.rank() - x.rank();
  c.check(added >= 0, c.show("x"), "; shape ", shape, " has fewer dimensions");
  for (int d = 0; d < shape.rank(); ++d) {
    if (d < added) {
      c.check(shape[d] > 0, "shape ", shape, ": the size of the new dimension ", d,
              " must be given");
      continue;
    }
    const int64_t size = x[d - added];
    if (shape[d] == -1) shape[d] = size;
    c.check(size == shape[d] || size == 1, c.show("x"), "; axis ", d - added,
            " cannot be expanded to ", shape[d]);
  }
  c.out("out") = {c.in("x").dtype, shape, ir::VarKind::kDense, -1};
}

void grad_expand(ir::Grad& g) {
  g.set("x", g.op("sum_to", {{"x", g.dout("out")}}, {{"shape", g.in("x").shape()}},
                  {{"out", g.dx("x")}}));
}

std::unique_ptr<kernel::Kernel> make_expand(kernel::Prepare& p) {
  const Shape &x = p.in("x").shape, &out = p.out("out").shape;
  const auto from = strides_of(x), to = strides_of(out);
  std::vector<StridedCopy::Dim> dims;
  for (int d = 0; d < out.rank(); ++d) {
    const int at = d - (out.rank() - x.rank());
    const bool repeated = at < 0 || x[at] == 1;
    dims.push_back(
        {out[d], repeated ? 0 : from[static_cast<size_t>(at)], to[static_cast<size_t>(d)]});
  }
  return std::make_unique<CopyKernel>(p, dims);
}

// Shape and repeats brought to one rank by leading ones.
void align(std::vector<int64_t>& shape, std::vector<int64_t>& repeats) {
  const size_t rank = std::max(shape.size(), repeats.size());
  shape.insert(shape.begin(), rank - shape.size(), 1);
  repeats.insert(repeats.begin(), rank - repeats.size(), 1);
}

void infer_tile(ir::Infer& c) {
  std::vector<int64_t> shape = c.in("x").shape.dims();
  auto repeats = c.attr<ir::Ints>("repeats");
  for (const int64_t n : repeats) c.check(n > 0, "repeats ", Shape(repeats), " must be positive");
  align(shape, repeats);
  for (size_t d = 0; d < shape.size(); ++d) shape[d] *= repeats[d];
  c.out("out") = {c.in("x").dtype, Shape(shape), ir::VarKind::kDense, -1};
}

void grad_tile(ir::Grad& g) {
  g.set("x", g.op("tile_grad", {{"dout", g.dout("out")}},
                  {{"repeats", g.attr<ir::Ints>("repeats")}, {"rank", g.in("x").shape().rank()}},
                  {{"dx", g.dx("x")}}));
}

std::unique_ptr<kernel::Kernel> make_tile(kernel::Prepare& p) {
  std::vector<int64_t> shape = p.in("x").shape.dims();
  auto repeats = p.attr<ir::Ints>("repeats");
  align(shape, repeats);
  const auto from = strides_of(Shape(shape)), to = strides_of(p.out("out").shape);
  std::vector<StridedCopy::Dim> dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    dims.push_back({repeats[d], 0, shape[d] * to[d]});
    dims.push_back({shape[d], from[d], to[d]});
  }
  return std::make_unique<CopyKernel>(p, dims);
}

void infer_tile_grad(ir::Infer& c) {
  const ir::TensorType& dout = c.in("dout");
  std::vector<int64_t> shape = dout.shape.dims();
  auto repeats = c.attr<ir::Ints>("repeats");
  c.check(repeats.size() <= shape.size(), c.show("dout"), "; repeats ", Shape(repeats),
          " has more dimensions");
  align(shape, repeats);
  for (size_t d = 0; d < shape.size(); ++d) {
    c.check(c.by_example() || shape[d] % repeats[d] == 0, c.show("dout"), "; axis ", d,
            " is not a multiple of ", repeats[d]);
    shape[d] /= repeats[d];
  }
  const auto rank = c.attr<int64_t>("rank");
  c.check(rank >= 0 && rank <= static_cast<int64_t>(shape.size()), "rank is ", rank);
  shape.erase(shape.begin(), shape.end() - rank);
  c.out("dx") = {dout.dtype, Shape(shape), ir::VarKind::kDense, -1};
}

template <class T>
class TileGradKernel final : public kernel::Kernel {
 public:
  explicit TileGradKernel(kernel::Prepare& p) : dout_(p.input("dout")), dx_(p.output("dx")) {
    const Shape& dout = p.in("dout").shape;
    repeats_ = p.attr<ir::Ints>("repeats");
    shape_ = dout.dims();
    align(shape_, repeats_);
    for (size_t d = 0; d < shape_.size(); ++d) shape_[d] /= repeats_[d];
    strides_ = strides_of(dout);
    width_ = shape_.empty() ? 1 : shape_.back();
    rows_ = width_ == 0 ? 0 : p.out("dx").numel() / width_;
    copies_ = Shape(repeats_).numel();
  }

  void run(const kernel::Run& r) override {
    const T* dout = r.in<T>(dout_);
    T* dx = r.out<T>(dx_);
    const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, width_ * copies_));
    parallel_for(rows_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) sum_copies(dout + place(row), dx + row * width_);
    });
  }

 private:
  // Where row `row` of dx has its first copy in dout.
  int64_t place(int64_t row) const {
    int64_t out = 0;
    for (size_t d = shape_.size() - (shape_.empty() ? 0 : 1); d-- > 0; row /= shape_[d])
      out += row % shape_[d] * strides_[d];
    return out;
  }

  void sum_copies(const T* first, T* to) const {
    const int64_t width = width_;
    for (int64_t copy = 0; copy < copies_; ++copy) {
      int64_t at = 0, rest = copy;
      for (size_t d = shape_.size(); d-- > 0; rest /= repeats_[d])
        at += rest % repeats_[d] * shape_[d] * strides_[d];
      const T* from = first + at;
      const bool set = copy == 0;
      vectorized([=] {
        for (int64_t j = 0; j < width; ++j) to[j] = set ? from[j] : to[j] + from[j];
      });
    }
  }

  kernel::Slot dout_, dx_;
  std::vector<int64_t> shape_, repeats_, strides_;  // of dx, brought to the rank of dout
  int64_t width_, rows_, copies_;
};

std::unique_ptr<kernel::Kernel> make_tile_grad(kernel::Prepare& p) {
  if (p.in("dout").dtype == f64) return std::make_unique<TileGradKernel<double>>(p);
  check_arg(p.in("dout").dtype == f32, ir::describe(p.op()), "no kernel for ", p.in("dout").dtype);
  return std::make_unique<TileGradKernel<float>>(p);
}

FLEETX_OP(expand)
    .input("x")
    .output("out")
    .required_attr("shape", ir::AttrType::kInts)
    .infer(infer_expand)
    .grad(grad_expand)
    .kernel(make_expand);

FLEETX_OP(tile)
    .input("x")
    .output("out")
    .required_attr("repeats", ir::AttrType::kInts)
    .infer(infer_tile)
    .grad(grad_tile)
    .kernel(make_tile);

FLEETX_OP(tile_grad)
    .input("dout")
    .output("dx")
    .required_attr("repeats", ir::AttrType::kInts)
    .required_attr("rank", ir::AttrType::kInt)
    .infer(infer_tile_grad)
    .kernel(also_half<make_tile_grad>);

}  // namespace
}  // namespace fleetx::ops
