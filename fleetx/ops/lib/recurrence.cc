#include "fleetx/ops/lib/recurrence.h"

#include <algorithm>
#include <limits>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/math.h"

namespace fleetx::ops {
namespace {

constexpr std::string_view kActivations[] = {"sigmoid", "tanh", "relu", "identity"};

// kActivations' position; 4 where the name is unknown.
int activation_number(std::string_view name) {
  return static_cast<int>(std::find(std::begin(kActivations), std::end(kActivations), name) -
                          std::begin(kActivations));
}

}  // namespace

void check_activation(const ir::Infer& c, const char* attr) {
  const auto name = c.attr<std::string>(attr);
  c.check(activation_number(name) < 4, attr, " must be sigmoid, tanh, relu or identity, got '",
          name, "'");
}

Activation activation_of(const kernel::Prepare& p, const char* attr) {
  return static_cast<Activation>(activation_number(p.attr<std::string>(attr)));
}

void activate(Activation f, float* v, int64_t n) {
  switch (f) {
    case Activation::kSigmoid:
      return vectorized([=] {
        for (int64_t i = 0; i < n; ++i) v[i] = math::sigmoid(v[i]);
      });
    case Activation::kTanh:
      return vectorized([=] {
        for (int64_t i = 0; i < n; ++i) v[i] = math::tanh(v[i]);
      });
    case Activation::kRelu:
      return vectorized([=] {
        for (int64_t i = 0; i < n; ++i) v[i] = v[i] > 0.0f ? v[i] : 0.0f;
      });
    case Activation::kIdentity: return;
  }
}

Slope::Slope(Activation f)
    : a(f == Activation::kSigmoid ? 0.0f : 1.0f),
      b(f == Activation::kSigmoid ? 1.0f : 0.0f),
      c(f == Activation::kSigmoid || f == Activation::kTanh ? -1.0f : 0.0f),
      floor(f == Activation::kRelu ? 0.0f : -std::numeric_limits<float>::infinity()) {}

void check_sequences(const ir::Infer& c) {
  const ir::TensorType &starts = c.in("starts"), &lengths = c.in("lengths");
  c.check(starts.dtype == i64 && starts.shape.rank() == 1, c.show("starts"),
          "; must be i64 [sequences]");
  c.check(starts == lengths, c.show("lengths"), ", but ", c.show("starts"));
}

void check_random_field(const ir::Infer& c) {
  const Shape &x = c.in("x").shape, &transition = c.in("transition").shape;
  c.check(c.in("x").dtype == f32 && x.rank() == 2 && x[1] > 0, c.show("x"),
          "; must be f32 [rows, tags]");
  c.check(c.in("transition").dtype == f32 && transition == Shape{x[1] + 2, x[1]},
          c.show("transition"), "; must be f32 [", x[1] + 2, ", ", x[1], "] for ", c.show("x"));
  check_sequences(c);
  if (!c.has("label")) return;
  c.check(c.in("label").dtype == i64 && c.in("label").shape == Shape{x[0]}, c.show("label"),
          "; must be i64 [rows], one for each row of ", c.show("x"));
}

void sum_columns(const float* a, int64_t rows, int64_t columns, int64_t stride, float* sum) {
  parallel_for(columns, (1 << 14) / (rows + 1) + 16, [=](int64_t begin, int64_t end) {
    std::fill(sum + begin, sum + end, 0.0f);
    vectorized([=] {
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t j = begin; j < end; ++j) sum[j] += a[row * stride + j];
    });
  });
}

Sequences::Sequences(kernel::Prepare& p, int64_t rows, bool reverse)
    : starts_(p.input("starts")),
      lengths_(p.input("lengths")),
      order_(p.scratch(static_cast<size_t>(p.in("starts").numel() + 1) * sizeof(int64_t))),
      count_(p.in("starts").numel()),
      rows_(rows),
      reverse_(reverse),
      where_(ir::describe(p.op())) {}

Sequences::Sorted Sequences::sorted(const kernel::Run& r) const {
  const int64_t *starts = r.in<int64_t>(starts_), *lengths = r.in<int64_t>(lengths_);
  auto* order = r.out<int64_t>(order_);
  int64_t end = 0;
  for (int64_t b = 0; b < count_; ++b) {
    check_arg(lengths[b] >= 0 && starts[b] >= end && starts[b] + lengths[b] <= rows_, where_,
              "sequence ", b, " begins at row ", starts[b], " and has ", lengths[b],
              " rows; the one before ends at ", end, ", and there are ", rows_, " rows");
    end = starts[b] + lengths[b];
    order[b] = b;
  }
  std::sort(order, order + count_, [lengths](int64_t a, int64_t b) {
    return lengths[a] != lengths[b] ? lengths[a] > lengths[b] : a < b;
  });
  Sorted s;
  s.starts_ = starts;
  s.lengths_ = lengths;
  s.order_ = order;
  s.count_ = count_;
  s.rows_ = rows_;
  s.reverse_ = reverse_;
  return s;
}

int64_t Sequences::Sorted::active(int64_t step) const {
  const int64_t* lengths = lengths_;
  return std::partition_point(order_, order_ + count_,
                              [=](int64_t b) { return lengths[b] > step; }) -
         order_;
}

void Sequences::Sorted::clear_others(float* rows, int64_t width) const {
  int64_t end = 0;
  for (int64_t b = 0; b < count_; ++b) {
    std::fill(rows + end * width, rows + starts_[b] * width, 0.0f);
    end = starts_[b] + lengths_[b];
  }
  std::fill(rows + end * width, rows + rows_ * width, 0.0f);
}

void Sequences::Sorted::shift(const float* rows, const float* first, float* to,
                              int64_t width) const {
  clear_others(to, width);
  for (int64_t b = 0; b < count_; ++b) {
    if (lengths_[b] == 0) continue;
    const int64_t begin = starts_[b] * width, rest = (lengths_[b] - 1) * width;
    float* edge = to + begin + (reverse_ ? rest : 0);
    if (reverse_)
      std::copy(rows + begin + width, rows + begin + width + rest, to + begin);
    else
      std::copy(rows + begin, rows + begin + rest, to + begin + width);
    if (first)
      std::copy(first + b * width, first + (b + 1) * width, edge);
    else
      std::fill(edge, edge + width, 0.0f);
  }
}

}  // namespace fleetx::ops
