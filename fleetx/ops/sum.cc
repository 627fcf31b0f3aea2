// sum: out = xs[0] + xs[1] + ... of one shape. Gradients that reach a variable on several ways meet
// here, so sparse rows are accepted: if all xs are sparse, out holds the rows of all of them (equal
// ids add up by definition); if one is dense, out is dense. 16-bit floats are added in f32 and
// rounded once; so are rows, which are always f32, to the 16-bit sum of the dense ones.
//   dxs[i] = dout.
#include <cstring>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/half.h"
#include "fleetx/ops/lib/sparse_rows.h"

namespace fleetx::ops {
namespace {

bool are_half_and_rows(const ir::TensorType& x, const ir::TensorType& y) {
  const ir::TensorType& dense = x.kind == ir::VarKind::kDense ? x : y;
  return x.kind != y.kind && is_half(dense.dtype);
}

void infer(ir::Infer& c) {
  c.check(c.count("xs") > 0, "needs at least one input");
  ir::TensorType out = c.in("xs");
  for (size_t i = 1; i < c.count("xs"); ++i) {
    const ir::TensorType& x = c.in("xs", i);
    c.check(x.shape == out.shape && (x.dtype == out.dtype || are_half_and_rows(x, out)),
            c.show("xs", i), ", but ", c.show("xs"), "; all must have one shape and dtype");
    if (x.kind == ir::VarKind::kDense) {
      out = x;
    } else if (out.kind == ir::VarKind::kSparseRows) {
      out.rows += x.rows;
    }
  }
  const DType dtype = out.dtype;
  c.check(is_float(dtype) || dtype == i32 || dtype == i64, c.show("xs"),
          "; expected a float, i32 or i64");
  c.check(out.kind == ir::VarKind::kDense || dtype == f32, c.show("xs"), "; sparse rows are f32");
  c.out("out") = out;
}

void grad(ir::Grad& g) {
  for (size_t i = 0; i < g.count("xs"); ++i) g.set("xs", i, g.dout("out"));
}

ir::Cost cost(const ir::Infer& c) {
  return {.flops = static_cast<double>(c.count("xs") - 1) *
                   static_cast<double>(c.in("xs").shape.numel())};
}

// The dense inputs, block by block, so that a partial sum does not leave the cache.
template <class T>
class DenseKernel final : public kernel::Kernel {
 public:
  explicit DenseKernel(kernel::Prepare& p) {
    Layout layout;
    for (size_t i = 0; i < p.count("xs") && layout.is_plain(); ++i) layout = p.in("xs", i).layout;
    for (size_t i = 0; i < p.count("xs"); ++i) xs_.push_back(p.input("xs", i, layout));
    out_ = p.output("out", 0, layout);
    n_ = layout.stored(p.out("out").shape);
  }

  void run(const kernel::Run& r) override {
    constexpr int64_t kBlock = 4096;
    T* out = r.out<T>(out_);
    parallel_for(n_, 1 << 15, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += kBlock) {
        const int64_t n = std::min(kBlock, end - at);
        T* to = out + at;
        const T* first = r.in<T>(xs_[0]) + at;
        if (xs_.size() == 1 && to != first) std::copy(first, first + n, to);
        for (size_t i = 1; i < xs_.size(); ++i) {
          const T* a = i == 1 ? first : to;
          const T* b = r.in<T>(xs_[i]) + at;
          vectorized([=] {
            for (int64_t j = 0; j < n; ++j) to[j] = a[j] + b[j];
          });
        }
      }
    });
  }

 private:
  std::vector<kernel::Slot> xs_;
  kernel::Slot out_;
  int64_t n_;
};

// The dense inputs have 16 bits.
class HalfKernel final : public kernel::Kernel {
 public:
  explicit HalfKernel(kernel::Prepare& p)
      : dtype_(p.out("out").dtype), width_(p.out("out").shape.numel(1, p.out("out").shape.rank())) {
    const auto is_sparse = [&](size_t i) { return p.in("xs", i).kind != ir::VarKind::kDense; };
    Layout layout;  // rows are those of a row-major table
    bool any_rows = false;
    for (size_t i = 0; i < p.count("xs"); ++i) any_rows |= is_sparse(i);
    for (size_t i = 0; i < p.count("xs") && layout.is_plain() && !any_rows; ++i)
      layout = p.in("xs", i).layout;
    for (size_t i = 0; i < p.count("xs"); ++i) {
      const int64_t rows = p.in("xs", i).rows;
      if (is_sparse(i))
        rows_.push_back({p.input("xs", i), rows, MergeRows(p, rows, width_)});
      else
        xs_.push_back(p.input("xs", i, layout));
    }
    out_ = p.output("out", 0, layout);
    n_ = layout.stored(p.out("out").shape);
  }

  void run(const kernel::Run& r) override {
    if (xs_.size() > 1 || r.raw(xs_[0]) != r.raw(out_)) add_dense(r);
    auto* out = r.out<uint16_t>(out_);
    for (const Rows& rows : rows_)
      rows.merge.for_each(r, r.rows(rows.slot, rows.capacity),
                          [&](int, int64_t id, const float* row) { add(row, out + id * width_); });
  }

 private:
  static constexpr int64_t kBlock = 1024;

  struct Rows {
    kernel::Slot slot;
    int64_t capacity;
    MergeRows merge;
  };

  void add_dense(const kernel::Run& r) const {
    parallel_for(n_, 1 << 15, [&](int64_t begin, int64_t end) {
      alignas(64) float sum[kBlock], more[kBlock];
      for (int64_t at = begin; at < end; at += kBlock) {
        const int64_t n = std::min(kBlock, end - at);
        widen(dtype_, r.in<uint16_t>(xs_[0]) + at, sum, n);
        for (size_t i = 1; i < xs_.size(); ++i) {
          widen(dtype_, r.in<uint16_t>(xs_[i]) + at, more, n);
          vectorized([to = sum, from = more, n] {
#pragma GCC ivdep
            for (int64_t j = 0; j < n; ++j) to[j] += from[j];
          });
        }
        narrow(sum, dtype_, r.out<uint16_t>(out_) + at, n);
      }
    });
  }

  void add(const float* row, uint16_t* to) const {
    alignas(64) float sum[kBlock];
    for (int64_t at = 0; at < width_; at += kBlock) {
      const int64_t n = std::min(kBlock, width_ - at);
      widen(dtype_, to + at, sum, n);
      vectorized([out = sum, more = row + at, n] {
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) out[j] += more[j];
      });
      narrow(sum, dtype_, to + at, n);
    }
  }

  DType dtype_;
  int64_t width_, n_;
  std::vector<kernel::Slot> xs_;  // the dense ones
  std::vector<Rows> rows_;
  kernel::Slot out_;
};

// At least one sparse input; the dense ones are f32.
class SparseKernel final : public kernel::Kernel {
 public:
  explicit SparseKernel(kernel::Prepare& p)
      : xs_(p.inputs("xs")),
        out_(p.output("out")),
        out_dense_(p.out("out").kind == ir::VarKind::kDense),
        out_rows_(p.out("out").rows),
        n_(p.out("out").numel()),
        width_(p.out("out").shape.numel(1, p.out("out").shape.rank())) {
    for (size_t i = 0; i < xs_.size(); ++i)
      capacity_.push_back(p.in("xs", i).kind == ir::VarKind::kDense ? -1 : p.in("xs", i).rows);
  }

  void run(const kernel::Run& r) override {
    if (out_dense_)
      add_to_dense(r);
    else
      append_rows(r);
  }

 private:
  void append_rows(const kernel::Run& r) const {
    const kernel::SparseRows out = r.rows(out_, out_rows_);
    int64_t count = 0;
    for (size_t i = 0; i < xs_.size(); ++i) {
      const kernel::SparseRows x = r.rows(xs_[i], capacity_[i]);
      std::copy(x.ids, x.ids + *x.count, out.ids + count);
      std::copy(x.values, x.values + *x.count * width_, out.values + count * width_);
      count += *x.count;
    }
    *out.count = count;
  }

  void add_to_dense(const kernel::Run& r) const {
    float* out = r.out<float>(out_);
    bool written = false;
    for (size_t i = 0; i < xs_.size(); ++i) {
      if (capacity_[i] >= 0) continue;
      const float* x = r.in<float>(xs_[i]);
      const bool add = written;
      parallel_for(n_, 1 << 15, [=](int64_t begin, int64_t end) {
        vectorized([=] {
          for (int64_t j = begin; j < end; ++j) out[j] = add ? out[j] + x[j] : x[j];
        });
      });
      written = true;
    }
    for (size_t i = 0; i < xs_.size(); ++i) {
      if (capacity_[i] < 0) continue;
      const kernel::SparseRows x = r.rows(xs_[i], capacity_[i]);
      for (int64_t row = 0; row < *x.count; ++row) {
        float* to = out + x.ids[row] * width_;
        const float* from = x.values + row * width_;
        for (int64_t j = 0; j < width_; ++j) to[j] += from[j];
      }
    }
  }

  std::vector<kernel::Slot> xs_;
  kernel::Slot out_;
  std::vector<int64_t> capacity_;  // of a sparse input; -1: dense
  bool out_dense_;
  int64_t out_rows_, n_, width_;
};

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  if (is_half(p.out("out").dtype)) return std::make_unique<HalfKernel>(p);
  for (size_t i = 0; i < p.count("xs"); ++i)
    if (p.in("xs", i).kind == ir::VarKind::kSparseRows) return std::make_unique<SparseKernel>(p);
  switch (p.in("xs").dtype) {
    case DType::kF64: return std::make_unique<DenseKernel<double>>(p);
    case DType::kI32: return std::make_unique<DenseKernel<int32_t>>(p);
    case DType::kI64: return std::make_unique<DenseKernel<int64_t>>(p);
    default: return std::make_unique<DenseKernel<float>>(p);
  }
}

FLEETX_OP(sum)
    .input("xs", ir::Arity::kMany)
    .output("out")
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel(make)
    .in_place("out", "xs")
    .element_wise();

}  // namespace
}  // namespace fleetx::ops
