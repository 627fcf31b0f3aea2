// Reduction over any set of dimensions, as stages that each reduce the middle of [outer, reduce,
// inner]. How the work is cut depends on the shape only, so the result has the same bits with any
// number of threads.
//
// A reducer R has R::Acc<T> (what values of type T are collected in), R::start<Acc>(),
// R::add(Acc, value), where value is a T or another Acc, and R::finish(Acc, count).
#pragma once

#include <algorithm>
#include <vector>

#include "fleetx/base/shape.h"
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"

namespace fleetx::ops {

class Reduction {
 public:
  Reduction() = default;
  // reduced[d]: dimension d of the row-major x disappears.
  Reduction(const Shape& x, const std::vector<bool>& reduced);

  // Elements of each of the two buffers that run needs for partial results.
  int64_t partials() const { return partials_; }
  int64_t count() const { return count_; }  // values that meet in one result

  template <class R, class T, class Acc, class Out>
  void run(const T* x, Acc* partial_a, Acc* partial_b, Out* out) const {
    const int64_t count = count_;
    const auto finish = [count](const Acc& acc) { return R::template finish<Out>(acc, count); };
    const auto keep = [](const Acc& acc) { return acc; };
    if (stages_.size() == 1) return run_stage<R, Acc>(stages_[0], x, out, finish);
    run_stage<R, Acc>(stages_[0], x, partial_a, keep);
    for (size_t s = 1; s + 1 < stages_.size(); ++s, std::swap(partial_a, partial_b))
      run_stage<R, Acc>(stages_[s], static_cast<const Acc*>(partial_a), partial_b, keep);
    run_stage<R, Acc>(stages_.back(), static_cast<const Acc*>(partial_a), out, finish);
  }

 private:
  // [outer, reduce, inner] -> [outer, pieces, inner]; the next stage adds up the pieces.
  struct Stage {
    int64_t outer, reduce, inner, pieces;
  };
  static constexpr int64_t kColumns = 256;

  void add_stage(int64_t outer, int64_t reduce, int64_t inner);

  template <class R, class Acc, class In>
  static Acc reduce_row(const In* x, int64_t n) {
    // Many independent chains: they fill the vector units and keep rounding errors small. (Fewer
    // than 64, and the compiler would unroll the loop over them instead of turning it into vector
    // code.)
    constexpr int kLanes = 64;
    Acc lanes[kLanes];
    if (n < kLanes) {
      Acc acc = R::template start<Acc>();
      for (int64_t i = 0; i < n; ++i) acc = R::add(acc, x[i]);
      return acc;
    }
    for (Acc& lane : lanes) lane = R::template start<Acc>();
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      for (int l = 0; l < kLanes; ++l) lanes[l] = R::add(lanes[l], x[i + l]);
    for (int l = 0; i + l < n; ++l) lanes[l] = R::add(lanes[l], x[i + l]);
    for (int width = kLanes / 2; width > 0; width /= 2)
      for (int l = 0; l < width; ++l) lanes[l] = R::add(lanes[l], lanes[l + width]);
    return lanes[0];
  }

  template <class R, class Acc, class In, class Out, class Finish>
  static void reduce_columns(const In* x, int64_t rows, int64_t stride, int64_t columns, Out* out,
                             const Finish& finish) {
    Acc acc[kColumns];
    for (int64_t j = 0; j < columns; ++j) acc[j] = R::template start<Acc>();
    for (int64_t r = 0; r < rows; ++r, x += stride)
      for (int64_t j = 0; j < columns; ++j) acc[j] = R::add(acc[j], x[j]);
    for (int64_t j = 0; j < columns; ++j) out[j] = finish(acc[j]);
  }

  template <class R, class Acc, class In, class Out, class Finish>
  static void run_stage(const Stage& s, const In* x, Out* out, const Finish& finish) {
    const int64_t strips = (s.inner + kColumns - 1) / kColumns;
    const int64_t work = std::max<int64_t>(1, s.reduce / s.pieces * std::min(s.inner, kColumns));
    const auto body = [=](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t strip = item % strips, piece = item / strips % s.pieces;
        const int64_t o = item / strips / s.pieces, column = strip * kColumns;
        const int64_t first = s.reduce * piece / s.pieces;
        const int64_t rows = s.reduce * (piece + 1) / s.pieces - first;
        const In* from = x + (o * s.reduce + first) * s.inner + column;
        Out* to = out + (o * s.pieces + piece) * s.inner + column;
        if (s.inner == 1)
          *to = finish(reduce_row<R, Acc>(from, rows));
        else
          reduce_columns<R, Acc>(from, rows, s.inner, std::min(kColumns, s.inner - column), to,
                                 finish);
      }
    };
    parallel_for(s.outer * s.pieces * strips, std::max<int64_t>(1, (1 << 15) / work),
                 [&](int64_t begin, int64_t end) {
                   if constexpr (std::is_integral_v<In>)
                     body(begin, end);
                   else
                     vectorized([=] { body(begin, end); });
                 });
  }

  std::vector<Stage> stages_;
  int64_t partials_ = 0, count_ = 1;
};

}  // namespace fleetx::ops
