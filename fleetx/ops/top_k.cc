// top_k: the k largest (or smallest) entries along an axis, best first, and where they stood.
// argsort: all entries in ascending (or descending) order, and where they stood.
// Of equal entries the one that stood first comes first; a NaN counts as larger than everything.
// f32, f64, i32, i64. dx (top_k_grad): dout at the places it came from, zero elsewhere.
#include <algorithm>
#include <cmath>

#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/copy_kernel.h"

namespace fleetx::ops {
namespace {

void check_dtype(const ir::Infer& c) {
  const DType dtype = c.in("x").dtype;
  c.check(dtype == f32 || dtype == f64 || dtype == i32 || dtype == i64, c.show("x"),
          "; must be f32, f64, i32 or i64");
}

void infer_top_k(ir::Infer& c) {
  check_dtype(c);
  ir::TensorType out = c.in("x");
  const int axis = checked_axis(c, "x");
  const auto k = c.attr<int64_t>("k");
  c.check(k >= 1 && k <= out.shape[axis], c.show("x"), "; k must be in [1, ", out.shape[axis],
          "], the entries on axis ", axis, ", got ", k);
  out.shape[axis] = k;
  c.out("out") = out;
  out.dtype = i64;
  c.out("indices") = out;
}

void infer_argsort(ir::Infer& c) {
  check_dtype(c);
  ir::TensorType out = c.in("x");
  (void)checked_axis(c, "x");
  c.out("out") = out;
  out.dtype = i64;
  c.out("indices") = out;
}

void grad(ir::Grad& g) {
  const ir::Var x = g.in("x");
  const int axis = normalize_axis(g.attr<int64_t>("axis"), x.shape().rank());
  const int64_t size = x.shape()[axis];
  g.set("x", g.op("top_k_grad",
                  {{"indices", g.out("indices")},
                   {"dout", g.dout("out")},
                   {"x", size < 0 ? x : ir::Var()}},
                  {{"axis", axis}, {"size", size}}, {{"dx", g.dx("x")}}));
}

void infer_grad(ir::Infer& c) {
  ir::TensorType out = c.in("dout");
  const int axis = checked_axis(c, "dout");
  c.check(out.shape == c.in("indices").shape, c.show("dout"), ", ", c.show("indices"));
  c.check(c.attr<int64_t>("size") >= 0 || c.has("x"), "x must be given where its size is not");
  out.shape[axis] = c.has("x") ? c.in("x").shape[axis] : c.attr<int64_t>("size");
  c.out("dx") = out;
}

// A total order, also for NaN: entries are compared as (is it a NaN, value, place).
template <class T>
struct Entry {
  T value;
  int64_t place;

  static bool less(const Entry& a, const Entry& b) {
    if (a.value < b.value) return true;
    if (b.value < a.value) return false;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    return a_nan != b_nan ? b_nan : a.place < b.place;
  }
  static bool greater(const Entry& a, const Entry& b) {
    if (a.value > b.value) return true;
    if (b.value > a.value) return false;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    return a_nan != b_nan ? a_nan : a.place < b.place;
  }
};

template <class T>
class SortKernel final : public kernel::Kernel {
 public:
  SortKernel(kernel::Prepare& p, bool descending)
      : x_(p.input("x")),
        out_(p.output("out")),
        indices_(p.output("indices")),
        descending_(descending) {
    const Shape& x = p.in("x").shape;
    const int axis = normalize_axis(p.attr<int64_t>("axis"), x.rank());
    n_ = x[axis];
    k_ = p.out("out").shape[axis];
    outer_ = x.numel(0, axis);
    inner_ = x.numel(axis + 1, x.rank());
    room_ = align_up(static_cast<size_t>(n_) * sizeof(Entry<T>));
    scratch_ = p.scratch(static_cast<size_t>(num_threads()) * room_);
  }

  void run(const kernel::Run& r) override {
    const int64_t lines = outer_ * inner_;
    parallel_parts(lines, parts_for(lines, (1 << 11) / (n_ + 1) + 1),
                   [&](int part, int64_t begin, int64_t end) {
                     auto* entries = reinterpret_cast<Entry<T>*>(r.out<char>(scratch_) +
                                                                 static_cast<size_t>(part) * room_);
                     for (int64_t line = begin; line < end; ++line) {
                       if (descending_)
                         sort_line(r, line, entries, Entry<T>::greater);
                       else
                         sort_line(r, line, entries, Entry<T>::less);
                     }
                   });
  }

 private:
  template <class Before>
  void sort_line(const kernel::Run& r, int64_t line, Entry<T>* entries, Before before) const {
    const int64_t inner = inner_, first = line / inner * n_ * inner + line % inner;
    const T* x = r.in<T>(x_) + first;
    for (int64_t i = 0; i < n_; ++i) entries[i] = {x[i * inner], i};
    if (k_ < n_ / 8)
      std::partial_sort(entries, entries + k_, entries + n_, before);
    else
      std::sort(entries, entries + n_, before);
    const int64_t to = line / inner * k_ * inner + line % inner;
    T* out = r.out<T>(out_) + to;
    auto* indices = r.out<int64_t>(indices_) + to;
    for (int64_t i = 0; i < k_; ++i) {
      out[i * inner] = entries[i].value;
      indices[i * inner] = entries[i].place;
    }
  }

  kernel::Slot x_, out_, indices_;
  bool descending_;
  int64_t n_, k_, outer_, inner_;
  size_t room_;
  kernel::Slot scratch_;
};

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  const bool descending = p.attr<bool>(p.op().type() == "top_k" ? "largest" : "descending");
  switch (p.in("x").dtype) {
    case DType::kF64: return std::make_unique<SortKernel<double>>(p, descending);
    case DType::kI32: return std::make_unique<SortKernel<int32_t>>(p, descending);
    case DType::kI64: return std::make_unique<SortKernel<int64_t>>(p, descending);
    default: return std::make_unique<SortKernel<float>>(p, descending);
  }
}

template <class T>
class TopKGradKernel final : public kernel::Kernel {
 public:
  explicit TopKGradKernel(kernel::Prepare& p)
      : indices_(p.input("indices")),
        dout_(p.input("dout")),
        dx_(p.output("dx")),
        bytes_(p.out("dx").bytes()) {
    const Shape& dx = p.out("dx").shape;
    const int axis = normalize_axis(p.attr<int64_t>("axis"), dx.rank());
    n_ = dx[axis];
    k_ = p.in("dout").shape[axis];
    outer_ = dx.numel(0, axis);
    inner_ = dx.numel(axis + 1, dx.rank());
  }

  void run(const kernel::Run& r) override {
    zero_fill(r.raw(dx_), bytes_);
    const auto* indices = r.in<int64_t>(indices_);
    const T* dout = r.in<T>(dout_);
    T* dx = r.out<T>(dx_);
    const int64_t n = n_, k = k_, inner = inner_;
    parallel_for(outer_, (1 << 14) / (k * inner + 1) + 1, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin * k * inner; i < end * k * inner; ++i)
        dx[(i / (k * inner) * n + indices[i]) * inner + i % inner] = dout[i];
    });
  }

 private:
  kernel::Slot indices_, dout_, dx_;
  size_t bytes_;
  int64_t n_, k_, outer_, inner_;
};

std::unique_ptr<kernel::Kernel> make_grad(kernel::Prepare& p) {
  if (p.in("dout").dtype == f64) return std::make_unique<TopKGradKernel<double>>(p);
  check_arg(p.in("dout").dtype == f32, ir::describe(p.op()), "no kernel for ", p.in("dout").dtype);
  return std::make_unique<TopKGradKernel<float>>(p);
}

FLEETX_OP(top_k)
    .input("x")
    .output("out")
    .output("indices")
    .required_attr("k", ir::AttrType::kInt)
    .attr("axis", -1)
    .attr("largest", true)
    .infer(infer_top_k)
    .grad(grad)
    .kernel(make);

FLEETX_OP(argsort)
    .input("x")
    .output("out")
    .output("indices")
    .attr("axis", -1)
    .attr("descending", false)
    .infer(infer_argsort)
    .grad(grad)
    .kernel(make);

FLEETX_OP(top_k_grad)
    .input("indices")
    .input("dout")
    .input("x", ir::Arity::kOptional)
    .output("dx")
    .attr("axis", -1)
    .attr("size", -1)
    .infer(infer_grad)
    .kernel(make_grad)
    .shape_only("x");

}  // namespace
}  // namespace fleetx::ops
