// Broadcasting of two inputs: which dimensions meet, and a walk over them. Dimensions align from
// `axis` on for y (-1: the last ones meet, as in numpy, and either input may be the smaller one).
#pragma once

#include <algorithm>
#include <vector>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ir/infer.h"
#include "fleetx/tensor/layout.h"

namespace fleetx::ops {

// `small` with ones put around it until it has `rank` dimensions. An empty answer: does not fit.
std::vector<int64_t> align_dims(const Shape& small, int rank, int64_t axis);

// Shape of a binary op's out. Fails in the name of the op where x and y do not fit.
Shape broadcast_shape(const ir::Infer& c);

class Broadcast {
 public:
  Broadcast() = default;
  // Memory of out (and of an input of out's shape) is in `layout`; a smaller input is row-major.
  Broadcast(const Shape& out, const Shape& x, const Shape& y, int64_t axis, const Layout& layout);

  // True if the inner loop takes neighbours (or always the same element) of both inputs.
  bool contiguous() const;

  struct Dim {
    int64_t size, x, y;  // strides in elements; 0 where the input is broadcast
  };
  // Outermost first, as few as possible, at least one.
  const std::vector<Dim>& dims() const { return dims_; }
  int64_t numel() const { return numel_; }

  // out[...] = f(x[...], y[...]) for all elements, in parallel.
  template <class F, class X, class Y, class Out>
  void run(const F& f, const X* x, const Y* y, Out* out) const;

  // Some rows of the innermost dimension, which follow each other in the next one: where they begin
  // in x, y and out, and how far it is from one to the next.
  struct Rows {
    int64_t x, y, out;
    int64_t rows, columns, x_row, y_row;
  };
  // fn(rows) for all of them, in parallel.
  template <class Fn>
  void for_each_rows(const Fn& fn) const;

 private:
  // fn(x offset, y offset, out offset, rows) for runs of rows that follow each other in the
  // second-innermost dimension and together are the rows [begin, end).
  template <class Fn>
  void walk_rows(int64_t begin, int64_t end, const Fn& fn) const;

  std::vector<Dim> dims_{{1, 1, 1}};
  int64_t numel_ = 1;
};

template <class Fn>
void Broadcast::walk_rows(int64_t begin, int64_t end, const Fn& fn) const {
  const size_t row_dim = dims_.size() - 2;
  while (begin < end) {
    const int64_t first = begin % dims_[row_dim].size;
    const int64_t rows = std::min(end - begin, dims_[row_dim].size - first);
    int64_t x = first * dims_[row_dim].x, y = first * dims_[row_dim].y;
    int64_t rest = begin / dims_[row_dim].size;
    for (size_t d = row_dim; d-- > 0;) {
      x += rest % dims_[d].size * dims_[d].x;
      y += rest % dims_[d].size * dims_[d].y;
      rest /= dims_[d].size;
    }
    fn(x, y, begin * dims_.back().size, rows);
    begin += rows;
  }
}

namespace detail {

// Rows of `cols` elements; an inner stride is 0 or 1. ivdep: out may be the very memory of an
// input, but never overlaps it otherwise.
template <class F, class X, class Y, class Out>
inline void binary_rows(const F& f, const X* x, const Y* y, Out* out, int64_t rows, int64_t cols,
                        int64_t x_row, int64_t y_row, bool x_varies, bool y_varies) {
  for (int64_t r = 0; r < rows; ++r, x += x_row, y += y_row, out += cols) {
    if (x_varies && y_varies) {
#pragma GCC ivdep
      for (int64_t i = 0; i < cols; ++i) out[i] = f(x[i], y[i]);
    } else if (x_varies) {
      const Y right = *y;
#pragma GCC ivdep
      for (int64_t i = 0; i < cols; ++i) out[i] = f(x[i], right);
    } else {
      const X left = *x;
#pragma GCC ivdep
      for (int64_t i = 0; i < cols; ++i) out[i] = f(left, y[i]);
    }
  }
}

}  // namespace detail

template <class Fn>
void Broadcast::for_each_rows(const Fn& fn) const {
  if (numel_ == 0) return;
  constexpr int64_t kGrain = 1 << 14;
  const Dim inner = dims_.back();
  if (dims_.size() == 1) {
    parallel_for(inner.size, kGrain, [&](int64_t begin, int64_t end) {
      fn(Rows{begin * inner.x, begin * inner.y, begin, 1, end - begin, 0, 0});
    });
    return;
  }
  const Dim row = dims_[dims_.size() - 2];
  parallel_for(numel_ / inner.size, std::max<int64_t>(1, kGrain / inner.size),
               [&](int64_t begin, int64_t end) {
                 walk_rows(begin, end, [&](int64_t x, int64_t y, int64_t out, int64_t rows) {
                   fn(Rows{x, y, out, rows, inner.size, row.x, row.y});
                 });
               });
}

template <class F, class X, class Y, class Out>
void Broadcast::run(const F& f, const X* x, const Y* y, Out* out) const {
  const bool x_varies = dims_.back().x != 0, y_varies = dims_.back().y != 0;
  for_each_rows([&](const Rows& r) {
    const X* from_x = x + r.x;
    const Y* from_y = y + r.y;
    Out* to = out + r.out;
    vectorized_for<X>([=] {
      detail::binary_rows(f, from_x, from_y, to, r.rows, r.columns, r.x_row, r.y_row, x_varies,
                          y_varies);
    });
  });
}

}  // namespace fleetx::ops
