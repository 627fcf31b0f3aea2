// sequence_pool: one row per sequence of a ragged batch. Sequence b is the rows
// offsets[b] .. offsets[b+1]-1 of x [total, D]; out is [B, D]:
//   sum, mean, sqrt (sum / sqrt(length)), max, first, last; an empty sequence gives pad_value.
// offsets (i64 [B+1]) start at 0 and never fall; rows after the last offset belong to nobody.
// `index` on request, for max: the row of x that each value came from (-1: empty).
// dx spreads dout back: copies for sum, scaled for mean and sqrt, to the row chosen for the others.
#include <cmath>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/strided_copy.h"

namespace fleetx::ops {
namespace {

enum class Pool : uint8_t { kSum, kMean, kSqrt, kMax, kFirst, kLast };
constexpr std::string_view kPools[] = {"sum", "mean", "sqrt", "max", "first", "last"};

// kPools' position; 6 where the name is unknown.
int pool_number(std::string_view name) {
  return static_cast<int>(std::find(std::begin(kPools), std::end(kPools), name) -
                          std::begin(kPools));
}

void infer(ir::Infer& c) {
  const ir::TensorType &x = c.in("x"), &offsets = c.in("offsets");
  const auto type = c.attr<std::string>("type");
  c.check(pool_number(type) < 6, "type must be sum, mean, sqrt, max, first or last, got '", type,
          "'");
  c.check(x.shape.rank() >= 1 && (x.dtype == f32 || x.dtype == f64), c.show("x"),
          "; must be f32 or f64 rows");
  c.check(offsets.dtype == i64 && offsets.shape.rank() == 1 && offsets.shape[0] >= 1,
          c.show("offsets"), "; must be i64 [sequences + 1]");
  Shape shape = x.shape;
  shape[0] = offsets.shape[0] - 1;
  c.out("out") = {x.dtype, shape, ir::VarKind::kDense, -1};
  if (c.out_count("index") == 0) return;
  c.check(type == "max", "index is for type max only");
  c.out("index") = {i64, shape, ir::VarKind::kDense, -1};
}

// Of x only the shape is needed, unless the largest must be found again.
void grad(ir::Grad& g) {
  const bool max = g.attr<std::string>("type") == "max";
  g.set("x", g.op("sequence_pool_grad",
                  {{"like", g.in("x")},
                   {"x", max ? g.in("x") : ir::Var()},
                   {"offsets", g.in("offsets")},
                   {"dout", g.dout("out")}},
                  {{"type", g.attr<std::string>("type")}}, {{"dx", g.dx("x")}}));
}

void infer_grad(ir::Infer& c) {
  const auto type = c.attr<std::string>("type");
  c.check(pool_number(type) < 6, "type must be sum, mean, sqrt, max, first or last, got '", type,
          "'");
  c.check(type != "max" || c.has("x"), "type max needs x");
  c.check(c.by_example() || c.in("dout").shape[0] + 1 == c.in("offsets").shape[0], c.show("dout"),
          ", ", c.show("offsets"), "; must be [sequences, ..] and [sequences + 1]");
  c.out("dx") = c.in("like");
}

// The offsets of one run, checked.
class Offsets {
 public:
  Offsets(kernel::Prepare& p, int64_t rows)
      : slot_(p.input("offsets")),
        sequences_(p.in("offsets").shape[0] - 1),
        rows_(rows),
        where_(str(ir::describe(p.op()), "offsets '", p.op().in("offsets").front(), "': ")) {}

  int64_t sequences() const { return sequences_; }
  const int64_t* checked(const kernel::Run& r) const {
    const int64_t* offsets = r.in<int64_t>(slot_);
    check_arg(offsets[0] == 0, where_, "the first is ", offsets[0], ", must be 0");
    for (int64_t b = 0; b < sequences_; ++b)
      check_arg(offsets[b] <= offsets[b + 1], where_, "sequence ", b, " begins at ", offsets[b],
                " and ends at ", offsets[b + 1]);
    check_arg(offsets[sequences_] <= rows_, where_, "the last is ", offsets[sequences_],
              ", but x has ", rows_, " rows");
    return offsets;
  }

 private:
  kernel::Slot slot_;
  int64_t sequences_, rows_;
  std::string where_;
};

template <class T>
T scale_of(Pool pool, int64_t length) {
  if (pool == Pool::kMean) return T{1} / static_cast<T>(length);
  if (pool == Pool::kSqrt) return T{1} / std::sqrt(static_cast<T>(length));
  return T{1};
}

int64_t grain_of(int64_t elements, int64_t sequences) {
  return (1 << 14) / (elements / std::max<int64_t>(1, sequences) + 1) + 1;
}

template <class T>
class SequencePoolKernel final : public kernel::Kernel {
 public:
  explicit SequencePoolKernel(kernel::Prepare& p)
      : offsets_(p, p.in("x").shape[0]),
        x_(p.input("x")),
        out_(p.output("out")),
        index_(p.output("index")),
        pool_(static_cast<Pool>(pool_number(p.attr<std::string>("type")))),
        pad_(static_cast<T>(p.attr<double>("pad_value"))),
        elements_(p.in("x").numel()),
        width_(p.in("x").shape.numel(1, p.in("x").shape.rank())) {}

  void run(const kernel::Run& r) override {
    const int64_t* offsets = offsets_.checked(r);
    const T* x = r.in<T>(x_);
    T* out = r.out<T>(out_);
    auto* index = r.out<int64_t>(index_);
    parallel_for(offsets_.sequences(), grain_of(elements_, offsets_.sequences()),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t b = begin; b < end; ++b)
                     pool(x, offsets[b], offsets[b + 1], out + b * width_,
                          index ? index + b * width_ : nullptr);
                 });
  }

 private:
  void pool(const T* x, int64_t first, int64_t last, T* out, int64_t* index) const {
    const int64_t width = width_;
    if (first == last) {
      std::fill(out, out + width, pad_);
      if (index) std::fill(index, index + width, -1);
      return;
    }
    const T* start = x + (pool_ == Pool::kLast ? last - 1 : first) * width;
    std::copy(start, start + width, out);
    if (index) std::fill(index, index + width, first);
    if (pool_ == Pool::kFirst || pool_ == Pool::kLast) return;
    for (int64_t row = first + 1; row < last; ++row) {
      const T* from = x + row * width;
      if (pool_ != Pool::kMax) {
        vectorized([=] {
          for (int64_t j = 0; j < width; ++j) out[j] += from[j];
        });
        continue;
      }
      for (int64_t j = 0; j < width; ++j) {
        if (!(from[j] > out[j])) continue;
        out[j] = from[j];
        if (index) index[j] = row;
      }
    }
    const T scale = scale_of<T>(pool_, last - first);
    for (int64_t j = 0; j < width && scale != T{1}; ++j) out[j] *= scale;
  }

  Offsets offsets_;
  kernel::Slot x_, out_, index_;
  Pool pool_;
  T pad_;
  int64_t elements_, width_;
};

template <class T>
class SequencePoolGradKernel final : public kernel::Kernel {
 public:
  explicit SequencePoolGradKernel(kernel::Prepare& p)
      : offsets_(p, p.in("like").shape[0]),
        x_(p.input("x")),
        dout_(p.input("dout")),
        dx_(p.output("dx")),
        pool_(static_cast<Pool>(pool_number(p.attr<std::string>("type")))),
        rows_(p.in("like").shape[0]),
        width_(p.in("like").shape.numel(1, p.in("like").shape.rank())) {}

  void run(const kernel::Run& r) override {
    const int64_t* offsets = offsets_.checked(r);
    const int64_t sequences = offsets_.sequences(), width = width_;
    const T *x = r.in<T>(x_), *dout = r.in<T>(dout_);
    T* dx = r.out<T>(dx_);
    parallel_for(sequences, grain_of(rows_ * width, sequences), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        spread(x, offsets[b], offsets[b + 1], dout + b * width, dx);
    });
    const int64_t used = offsets[sequences] * width;
    zero_fill(dx + used, static_cast<size_t>(rows_ * width - used) * sizeof(T));
  }

 private:
  void spread(const T* x, int64_t first, int64_t last, const T* dout, T* dx) const {
    const int64_t width = width_;
    if (first == last) return;
    if (pool_ == Pool::kSum || pool_ == Pool::kMean || pool_ == Pool::kSqrt) {
      const T scale = scale_of<T>(pool_, last - first);
      for (int64_t row = first; row < last; ++row) {
        T* to = dx + row * width;
        vectorized([=] {
          for (int64_t j = 0; j < width; ++j) to[j] = scale * dout[j];
        });
      }
      return;
    }
    std::fill(dx + first * width, dx + last * width, T{0});
    for (int64_t j = 0; j < width; ++j) {
      int64_t chosen = pool_ == Pool::kLast ? last - 1 : first;
      for (int64_t row = first + 1; pool_ == Pool::kMax && row < last; ++row)
        if (x[row * width + j] > x[chosen * width + j]) chosen = row;
      dx[chosen * width + j] = dout[j];
    }
  }

  Offsets offsets_;
  kernel::Slot x_, dout_, dx_;
  Pool pool_;
  int64_t rows_, width_;
};

template <template <class> class K>
std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  const DType dtype = p.in(p.op().def->inputs.front().name).dtype;
  if (dtype == f64) return std::make_unique<K<double>>(p);
  return std::make_unique<K<float>>(p);
}

FLEETX_OP(sequence_pool)
    .input("x")
    .input("offsets")
    .output("out")
    .output("index", ir::Arity::kOptional)
    .attr("type", "sum")
    .attr("pad_value", 0.0)
    .infer(infer)
    .grad(grad)
    .kernel(make<SequencePoolKernel>);

FLEETX_OP(sequence_pool_grad)
    .input("like")
    .input("x", ir::Arity::kOptional)
    .input("offsets")
    .input("dout")
    .output("dx")
    .attr("type", "sum")
    .infer(infer_grad)
    .kernel(make<SequencePoolGradKernel>)
    .shape_only("like");

}  // namespace
}  // namespace fleetx::ops
