// pad: out[i] = x[i - before] inside; outside `value` (constant), the nearest entry (edge) or the
// mirrored one (reflect: ..x2 x1 x0 x1 x2..). paddings = [before0, after0, before1, after1, ..],
// one pair per dimension. Any dtype. constant: dx = the inner part of dout. edge, reflect: dx[j] =
// sum of dout[i] over the i that read x[j], in order (pad_grad, floats).
#include <cstring>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/copy_kernel.h"
#include "fleetx/ops/lib/in_f32.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  Shape shape = c.in("x").shape;
  const auto paddings = c.attr<ir::Ints>("paddings");
  const auto mode = c.attr<std::string>("mode");
  c.check(mode == "constant" || mode == "reflect" || mode == "edge",
          "mode must be constant, reflect or edge, got '", mode, "'");
  c.check(static_cast<int>(paddings.size()) == 2 * shape.rank(), c.show("x"), "; paddings needs ",
          2 * shape.rank(), " numbers, got ", Shape(paddings));
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t before = paddings[static_cast<size_t>(2 * d)];
    const int64_t after = paddings[static_cast<size_t>(2 * d + 1)];
    c.check(before >= 0 && after >= 0, "paddings ", Shape(paddings), " must not be negative");
    c.check(mode != "reflect" || std::max(before, after) < std::max<int64_t>(1, shape[d]),
            c.show("x"), "; reflect paddings of axis ", d, " must be less than its size");
    c.check(mode != "edge" || before + after == 0 || shape[d] > 0, c.show("x"), "; axis ", d,
            " is empty");
    shape[d] += before + after;
  }
  c.out("out") = {c.in("x").dtype, shape, ir::VarKind::kDense, -1};
}

void grad(ir::Grad& g) {
  const auto paddings = g.attr<ir::Ints>("paddings");
  const auto mode = g.attr<std::string>("mode");
  if (mode != "constant") {
    g.set("x", g.op("pad_grad", {{"dout", g.dout("out")}}, {{"paddings", paddings}, {"mode", mode}},
                    {{"dx", g.dx("x")}}));
    return;
  }
  ir::Ints axes, starts, ends;
  for (size_t d = 0; d < paddings.size() / 2; ++d) {
    const int64_t before = paddings[2 * d], after = paddings[2 * d + 1];
    if (before + after == 0) continue;
    axes.push_back(static_cast<int64_t>(d));
    starts.push_back(before);
    ends.push_back(after == 0 ? INT32_MAX : -after);
  }
  g.set("x", g.op("slice", {{"x", g.dout("out")}},
                  {{"axes", axes}, {"starts", starts}, {"ends", ends}}, {{"out", g.dx("x")}}));
}

void infer_grad(ir::Infer& c) {
  Shape shape = c.in("dout").shape;
  const auto paddings = c.attr<ir::Ints>("paddings");
  c.check(static_cast<int>(paddings.size()) == 2 * shape.rank(), c.show("dout"),
          "; paddings needs ", 2 * shape.rank(), " numbers, got ", Shape(paddings));
  for (int d = 0; d < shape.rank(); ++d) {
    shape[d] -= paddings[static_cast<size_t>(2 * d)] + paddings[static_cast<size_t>(2 * d + 1)];
    c.check(shape[d] >= 0, c.show("dout"), "; is smaller than its paddings ", Shape(paddings));
  }
  c.out("dx") = {c.in("dout").dtype, shape, ir::VarKind::kDense, -1};
}

class ConstantPadKernel final : public kernel::Kernel {
 public:
  explicit ConstantPadKernel(kernel::Prepare& p)
      : x_(p.input("x")),
        out_(p.output("out")),
        n_(p.out("out").numel()),
        dtype_(p.in("x").dtype),
        value_(p.attr<double>("value")) {
    const Shape& x = p.in("x").shape;
    const auto paddings = p.attr<ir::Ints>("paddings");
    const auto from = strides_of(x), to = strides_of(p.out("out").shape);
    std::vector<StridedCopy::Dim> dims;
    for (int d = 0; d < x.rank(); ++d) {
      const auto i = static_cast<size_t>(d);
      dims.push_back({x[d], from[i], to[i]});
      start_ += paddings[2 * i] * to[i] * static_cast<int64_t>(size_of(dtype_));
    }
    copy_ = StridedCopy(size_of(dtype_), dims);
  }

  void run(const kernel::Run& r) override {
    fill(r.raw(out_), dtype_, n_, value_);
    copy_.run(r.raw(x_), r.out<char>(out_) + start_);
  }
  std::string_view implementation() const override { return copy_.kind(); }

 private:
  kernel::Slot x_, out_;
  int64_t n_, start_ = 0;
  DType dtype_;
  double value_;
  StridedCopy copy_;
};

// Which entry of the small side each entry of the large side reads, by dimension.
class PadMap {
 public:
  PadMap(const Shape& small, const Shape& large, const ir::Ints& paddings, bool reflect)
      : large_(large), strides_(strides_of(small)), source_(static_cast<size_t>(large.rank())) {
    for (int d = 0; d < large.rank(); ++d) {
      const int64_t n = small[d], before = paddings[static_cast<size_t>(2 * d)];
      for (int64_t i = 0; i < large[d]; ++i) {
        int64_t from = i - before;
        if (reflect && from < 0) from = -from;
        if (reflect && from >= n) from = 2 * (n - 1) - from;
        source_[static_cast<size_t>(d)].push_back(std::clamp<int64_t>(from, 0, n - 1));
      }
    }
    width_ = large.rank() == 0 ? 1 : large.back();
    rows_ = width_ == 0 ? 0 : large.numel() / width_;
    while (free_ + 1 < large.rank() && small[free_] == large[free_]) ++free_;
  }

  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }
  // Rows of the large side that share no entry of the small side with others come in groups of
  // this many.
  int64_t group() const {
    return large_.numel(free_, large_.rank()) / std::max<int64_t>(1, width_);
  }
  // Element of the small side where the source of a row of the large side begins.
  int64_t start(int64_t row) const {
    int64_t out = 0;
    for (int d = large_.rank() - 2; d >= 0; row /= large_[d], --d)
      out += source_[static_cast<size_t>(d)][static_cast<size_t>(row % large_[d])] *
             strides_[static_cast<size_t>(d)];
    return out;
  }
  const int64_t* columns() const { return source_.empty() ? &zero_ : source_.back().data(); }

 private:
  Shape large_;
  std::vector<int64_t> strides_;
  std::vector<std::vector<int64_t>> source_;
  int64_t width_, rows_, zero_ = 0;
  int free_ = 0;  // leading dimensions without padding
};

class MappedPadKernel final : public kernel::Kernel {
 public:
  explicit MappedPadKernel(kernel::Prepare& p)
      : x_(p.input("x")),
        out_(p.output("out")),
        dtype_(p.in("x").dtype),
        map_(p.in("x").shape, p.out("out").shape, p.attr<ir::Ints>("paddings"),
             p.attr<std::string>("mode") == "reflect") {}

  void run(const kernel::Run& r) override {
    with_type(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* x = r.in<T>(x_);
      T* out = r.out<T>(out_);
      const int64_t width = map_.width(), *columns = map_.columns();
      parallel_for(map_.rows(), (1 << 14) / (width + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* from = x + map_.start(row);
          T* to = out + row * width;
          for (int64_t j = 0; j < width; ++j) to[j] = from[columns[j]];
        }
      });
    });
  }

 private:
  kernel::Slot x_, out_;
  DType dtype_;
  PadMap map_;
};

template <class T>
class PadGradKernel final : public kernel::Kernel {
 public:
  explicit PadGradKernel(kernel::Prepare& p)
      : dout_(p.input("dout")),
        dx_(p.output("dx")),
        bytes_(p.out("dx").bytes()),
        map_(p.out("dx").shape, p.in("dout").shape, p.attr<ir::Ints>("paddings"),
             p.attr<std::string>("mode") == "reflect") {}

  void run(const kernel::Run& r) override {
    zero_fill(r.raw(dx_), bytes_);
    const T* dout = r.in<T>(dout_);
    T* dx = r.out<T>(dx_);
    const int64_t width = map_.width(), *columns = map_.columns();
    const int64_t group = std::max<int64_t>(1, map_.group());
    parallel_for(map_.rows() / group, (1 << 14) / (group * width + 1) + 1,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin * group; row < end * group; ++row) {
                     const T* from = dout + row * width;
                     T* to = dx + map_.start(row);
                     for (int64_t j = 0; j < width; ++j) to[columns[j]] += from[j];
                   }
                 });
  }

 private:
  kernel::Slot dout_, dx_;
  size_t bytes_;
  PadMap map_;
};

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  if (p.attr<std::string>("mode") == "constant") return std::make_unique<ConstantPadKernel>(p);
  return std::make_unique<MappedPadKernel>(p);
}

std::unique_ptr<kernel::Kernel> make_grad(kernel::Prepare& p) {
  if (p.in("dout").dtype == f64) return std::make_unique<PadGradKernel<double>>(p);
  check_arg(p.in("dout").dtype == f32, ir::describe(p.op()), "no kernel for ", p.in("dout").dtype);
  return std::make_unique<PadGradKernel<float>>(p);
}

FLEETX_OP(pad)
    .input("x")
    .output("out")
    .required_attr("paddings", ir::AttrType::kInts)
    .attr("value", 0.0)
    .attr("mode", "constant")
    .infer(infer)
    .grad(grad)
    .kernel(make);

FLEETX_OP(pad_grad)
    .input("dout")
    .output("dx")
    .required_attr("paddings", ir::AttrType::kInts)
    .attr("mode", "constant")
    .infer(infer_grad)
    .kernel(also_half<make_grad>);

}  // namespace
}  // namespace fleetx::ops
