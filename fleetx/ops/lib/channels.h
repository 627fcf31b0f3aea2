// Tensors [N, C, spatial...] seen by channel, whatever their layout: the value of channel c at
// place s of image n stands at ((n * outer + c / block) * spatial + s) * block + c % block.
//
//   NCHW: outer = C, block = 1      nChw16c: outer = C/16 rounded up, block = 16
//   NHWC: outer = 1, block = C      [N, C]: outer = 1, block = C, spatial = 1
//
// For loops that work channel by channel it is cut into strips: `rows` rows of `lanes` neighbouring
// channels. The cut depends on the shape alone, so sums over strips have one order for any number
// of threads.
#pragma once

#include <algorithm>
#include <optional>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/half.h"
#include "fleetx/tensor/layout.h"

namespace fleetx::ops {

struct Channels {
  int64_t batch, channels, outer, spatial, block;

  // Nothing where the layout is not of this form.
  static std::optional<Channels> of(const Shape& shape, const Layout& layout) {
    const int rank = shape.rank();
    const int64_t n = shape[0], c = shape[1], spatial = shape.numel(2, rank);
    if (layout.is_plain())
      return rank == 2 ? Channels{n, c, 1, 1, c} : Channels{n, c, c, spatial, 1};
    std::vector<int> channels_last{0};
    for (int d = 2; d < rank; ++d) channels_last.push_back(d);
    channels_last.push_back(1);
    if (layout.order == channels_last && layout.blocks.empty())
      return Channels{n, c, 1, spatial, c};
    if (!std::is_sorted(layout.order.begin(), layout.order.end()) || layout.blocks.size() != 1 ||
        layout.blocks[0].dim != 1)
      return std::nullopt;
    const int64_t block = layout.blocks[0].size;
    return Channels{n, c, (c + block - 1) / block, spatial, block};
  }

  int64_t padded() const { return outer * block; }  // channels with the padding of the last block
  int64_t per_channel() const { return batch * spatial; }
};

// fn(lane) for all lanes. Without the pragma few lanes are unrolled, and then not vectorised.
template <class Lanes, class Fn>
void for_lanes(Lanes lanes, const Fn& fn) {
  if constexpr (std::is_same_v<Lanes, std::integral_constant<int, 1>>) {
    fn(0);
  } else {
#pragma omp simd
    for (int l = 0; l < lanes; ++l) fn(l);
  }
}

// Runs body(lanes), vectorised; `lanes` is a constant for the usual widths.
template <class Body>
void with_lanes(int lanes, const Body& body) {
  switch (lanes) {
    case 1: return vectorized([body] { body(std::integral_constant<int, 1>()); });
    case 8: return vectorized([body] { body(std::integral_constant<int, 8>()); });
    case 16: return vectorized([body] { body(std::integral_constant<int, 16>()); });
    default: return vectorized([body, lanes] { body(lanes); });
  }
}

struct Strip {
  int64_t offset, rows, stride;  // first element; distance between rows
  int64_t channel;               // of the first lane
  int lanes;
  int64_t piece;  // number of this piece among those of the same channel
};

class Strips {
 public:
  explicit Strips(const Channels& c) : c_(c) {
    // With all channels together the rows of all images follow one another.
    plane_ = c.outer == 1 ? c.batch * c.spatial : c.spatial;
    planes_ = c.outer == 1 ? 1 : c.batch;
    pieces_per_plane_ = std::max<int64_t>((plane_ + kRows - 1) / kRows, 1);
    tiles_ = (c.block + kMaxLanes - 1) / kMaxLanes;
  }

  int64_t pieces() const { return planes_ * pieces_per_plane_; }
  int64_t groups() const { return c_.outer * tiles_; }  // of neighbouring channels
  int64_t count() const { return pieces() * groups(); }
  int64_t rows(int64_t piece) const {
    const int64_t i = piece % pieces_per_plane_;
    return (i + 1) * plane_ / pieces_per_plane_ - i * plane_ / pieces_per_plane_;
  }
  // In the order of memory.
  Strip operator[](int64_t i) const {
    const int64_t tile = i % tiles_;
    const int64_t piece = i / tiles_ % pieces_per_plane_;
    const int64_t plane = i / tiles_ / pieces_per_plane_;  // counts outer blocks of all images
    const int64_t first = piece * plane_ / pieces_per_plane_;
    const int64_t last = (piece + 1) * plane_ / pieces_per_plane_;
    return {(plane * plane_ + first) * c_.block + tile * kMaxLanes,
            last - first,
            c_.block,
            plane % c_.outer * c_.block + tile * kMaxLanes,
            static_cast<int>(lanes_of(tile)),
            plane / c_.outer * pieces_per_plane_ + piece};
  }

  // body(strip, lanes) for every strip, in parallel and vectorised; `lanes` is a constant where it
  // can be. With a constant 1 the rows of a strip are neighbours.
  template <class Body>
  void for_each(const Body& body) const {
    const int64_t elements = std::min(plane_, kRows) * std::min(c_.block, kMaxLanes);
    const int64_t grain = kGrain / std::max<int64_t>(elements, 1) + 1;
    parallel_for(count(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Strip strip = (*this)[i];
        with_lanes(strip.lanes, [body, strip](auto lanes) { body(strip, lanes); });
      }
    });
  }

  // measure(strip, lanes) for every strip, settle(channel, end) once all strips of these channels
  // are measured, then apply(strip, lanes) for every strip. Group after group, so that apply finds
  // in cache what measure has read; with fewer groups than threads, all strips at once. The results
  // are the same bits.
  template <class Measure, class Settle, class Apply>
  void sweep(const Measure& measure, const Settle& settle, const Apply& apply) const {
    if (groups() < num_threads()) {
      for_each(measure);
      settle(0, c_.channels);
      return for_each(apply);
    }
    parallel_for(groups(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        for_group(g, measure);
        const int64_t channel = (*this)[index(g, 0)].channel;
        settle(channel, std::min(channel + lanes_of(g), c_.channels));
        for_group(g, apply);
      }
    });
  }

  static constexpr int64_t kMaxLanes = 16;

 private:
  int64_t lanes_of(int64_t group) const {
    return std::min(kMaxLanes, c_.block - group % tiles_ * kMaxLanes);
  }
  // Where a piece of a group stands in the order of memory.
  int64_t index(int64_t group, int64_t piece) const {
    const int64_t plane = piece / pieces_per_plane_ * c_.outer + group / tiles_;
    return (plane * pieces_per_plane_ + piece % pieces_per_plane_) * tiles_ + group % tiles_;
  }
  template <class Body>
  void for_group(int64_t group, const Body& body) const {
    with_lanes(static_cast<int>(lanes_of(group)), [this, group, body](auto lanes) {
      for (int64_t piece = 0; piece < pieces(); ++piece) body((*this)[index(group, piece)], lanes);
    });
  }

  static constexpr int64_t kRows = 512;  // short enough for sums in f32
  static constexpr int64_t kGrain = 1 << 14;

  Channels c_;
  int64_t plane_, planes_, pieces_per_plane_, tiles_;
};

// sums[lane] = sum over the rows of a strip of value(offset, lane).
template <class Lanes, class Value>
void sum_strip(const Strip& strip, Lanes lanes, float* sums, const Value& value) {
  if constexpr (std::is_same_v<Lanes, std::integral_constant<int, 1>>) {
    float sum = 0;
    const int64_t offset = strip.offset, rows = strip.rows;
#pragma omp simd reduction(+ : sum)
    for (int64_t r = 0; r < rows; ++r) sum += value(offset + r, 0);
    sums[0] = sum;
    return;
  }
  float acc[Strips::kMaxLanes] = {};
  for (int64_t r = 0; r < strip.rows; ++r)
    for_lanes(lanes, [&](int l) { acc[l] += value(strip.offset + r * strip.stride + l, l); });
  for_lanes(lanes, [&](int l) { sums[l] = acc[l]; });
}

template <class T>
struct Two {
  T a, b;
};

// a[lane], b[lane] = sums over the rows of a strip of the two values term(T(), offset, lane); T is
// a Vector of all lanes, or float. Four rows are added at a time: one sum alone would wait for
// itself.
template <class Lanes, class Term>
void sum_two(const Strip& strip, Lanes lanes, float* a, float* b, const Term& term) {
  const int64_t offset = strip.offset, rows = strip.rows, stride = strip.stride;
  if constexpr (std::is_same_v<Lanes, std::integral_constant<int, 1>>) {
    float sum_a = 0, sum_b = 0;
#pragma omp simd reduction(+ : sum_a, sum_b)
    for (int64_t r = 0; r < rows; ++r) {
      const Two<float> t = term(float(), offset + r, 0);
      sum_a += t.a;
      sum_b += t.b;
    }
    a[0] = sum_a;
    b[0] = sum_b;
  } else if constexpr (std::is_same_v<Lanes, int>) {
    for (int l = 0; l < lanes; ++l) {
      Two<float> sum{};
      for (int64_t r = 0; r < rows; ++r) {
        const Two<float> t = term(float(), offset + r * stride + l, l);
        sum.a += t.a;
        sum.b += t.b;
      }
      a[l] = sum.a;
      b[l] = sum.b;
    }
  } else {
    using T = Vector<Lanes::value>;
    Two<T> s0{}, s1{}, s2{}, s3{};
    const auto add = [&](Two<T>& s, int64_t r) {
      const Two<T> t = term(T(), offset + r * stride, 0);
      s.a += t.a;
      s.b += t.b;
    };
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      add(s0, r);
      add(s1, r + 1);
      add(s2, r + 2);
      add(s3, r + 3);
    }
    for (; r < rows; ++r) add(s0, r);
    store(a, (s0.a + s1.a) + (s2.a + s3.a));
    store(b, (s0.b + s1.b) + (s2.b + s3.b));
  }
}

// fn(T(), offset, lane) for every element of a strip; T is a Vector of all lanes, or float.
template <class Lanes, class Fn>
void map_vectors(const Strip& strip, Lanes lanes, const Fn& fn) {
  const int64_t offset = strip.offset, rows = strip.rows, stride = strip.stride;
  if constexpr (std::is_same_v<Lanes, std::integral_constant<int, 1>>) {
#pragma omp simd
    for (int64_t r = 0; r < rows; ++r) fn(float(), offset + r, 0);
  } else if constexpr (std::is_same_v<Lanes, int>) {
    for (int64_t r = 0; r < rows; ++r)
      for (int l = 0; l < lanes; ++l) fn(float(), offset + r * stride + l, l);
  } else {
    for (int64_t r = 0; r < rows; ++r) fn(Vector<Lanes::value>(), offset + r * stride, 0);
  }
}

// fn(offset, lane) for every element of a strip.
template <class Lanes, class Fn>
void map_strip(const Strip& strip, Lanes lanes, const Fn& fn) {
  for (int64_t r = 0; r < strip.rows; ++r)
    for_lanes(lanes, [&](int l) { fn(strip.offset + r * strip.stride + l, l); });
}

// Sums of each channel over images and places; `partial` holds pieces() * padded() floats.
template <class S>
void channel_sums(const Channels& c, const S* x, float* partial, float* sums) {
  const Strips strips(c);
  const int64_t padded = c.padded();
  strips.for_each([=](const Strip& s, auto lanes) {
    sum_strip(s, lanes, partial + s.piece * padded + s.channel,
              [=](int64_t i, int) { return static_cast<float>(x[i]); });
  });
  for (int64_t channel = 0; channel < c.channels; ++channel) {
    double sum = 0;
    for (int64_t piece = 0; piece < strips.pieces(); ++piece)
      sum += partial[piece * padded + channel];
    sums[channel] = static_cast<float>(sum);
  }
}

}  // namespace fleetx::ops
