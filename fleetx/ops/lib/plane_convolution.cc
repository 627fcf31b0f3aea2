#include "fleetx/ops/lib/plane_convolution.h"

#include <cmath>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/channels.h"

namespace fleetx::ops {
namespace {

using V = Vector8;
constexpr int64_t kLanes = 8;
constexpr int64_t kBand = 24 << 10;  // floats of a band that should stay in the second-level cache
constexpr int64_t kParts = 8;        // bands of all images that there should be, for threads
constexpr int64_t kPieces = 16;

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// The first v with v * stride + from >= 0, within [0, end].
int64_t first_place(int64_t from, int64_t stride, int64_t end) {
  return from >= 0 ? 0 : std::min((-from + stride - 1) / stride, end);
}

// The places v < count with v * stride + start inside [0, size).
struct Inside {
  int64_t first, last;
  Inside(int64_t start, int64_t stride, int64_t size, int64_t count)
      : first(first_place(start, stride, count)),
        last(std::max(first, first_place(start - size, stride, count))) {}
};

// to[i] = fn(from[i]) for vectors and single values. Rows are short: calls of memcpy would take
// longer than the copy, so the last vector overlaps the one before it.
template <class Fn>
__attribute__((always_inline)) inline void map_row(const float* from, float* to, int64_t n,
                                                   const Fn& fn) {
  if (n < kLanes) {
    for (int64_t i = 0; i < n; ++i) to[i] = fn(from[i]);
    return;
  }
  for (int64_t i = 0; i + kLanes <= n; i += kLanes) store(to + i, fn(load<V>(from + i)));
  if (n % kLanes != 0) store(to + n - kLanes, fn(load<V>(from + n - kLanes)));
}

constexpr auto kSame = [](const auto& value) __attribute__((always_inline)) { return value; };

// Several rows; those that follow each other on both sides are one.
template <class Fn>
__attribute__((always_inline)) inline void map_rows(const float* from, int64_t from_row, float* to,
                                                    int64_t to_row, int64_t width, int64_t rows,
                                                    const Fn& fn) {
  if (from_row == width && to_row == width) return map_row(from, to, rows * width, fn);
  for (int64_t i = 0; i < rows; ++i) map_row(from + i * from_row, to + i * to_row, width, fn);
}

// to[i] = from[2 * i]
__attribute__((always_inline)) inline void every_second(const float* from, float* to, int64_t n) {
  // The second vector begins one place early, so that nothing behind the last value is read.
  const auto eight = [&](int64_t i) {
    store(to + i, __builtin_shufflevector(load<V>(from + 2 * i), load<V>(from + 2 * i + 7), 0, 2, 4,
                                          6, 9, 11, 13, 15));
  };
  if (n < kLanes) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
    return;
  }
  for (int64_t i = 0; i + kLanes <= n; i += kLanes) eight(i);
  if (n % kLanes != 0) eight(n - kLanes);
}

// Rows with the values of every stride-th place.
__attribute__((always_inline)) inline void gather_rows(const float* from, int64_t from_row,
                                                       int64_t stride, float* to, int64_t to_row,
                                                       int64_t width, int64_t rows) {
  if (stride == 1) return map_rows(from, from_row, to, to_row, width, rows, kSame);
  for (int64_t u = 0; u < rows; ++u, from += from_row, to += to_row) {
    if (stride == 2)
      every_second(from, to, width);
    else
      for (int64_t i = 0; i < width; ++i) to[i] = from[i * stride];
  }
}

// sums[k][p] for kOut results k and all p < count: over channels and taps, weight * value.
struct Sums {
  const float* from;  // channel 0
  int64_t channels, channel_step;
  const float* weights;  // of channel 0, result 0
  int64_t weight_channel, weight_result;
  int64_t count;
  float* to;
  int64_t to_step;
};

// The places [begin, end) of them; what is left at the end goes to fewer vectors.
template <int kOut, int kVectors, class Tap>
__attribute__((always_inline)) inline void make_sums(const Sums& s, const Tap* taps, size_t size,
                                                     int64_t begin, int64_t end) {
  int64_t p = begin;
  for (; kVectors == 1 ? p < end : p + kVectors * kLanes <= end; p += kVectors * kLanes) {
    V acc[kOut][kVectors] = {};
    for (int64_t c = 0; c < s.channels; ++c) {
      const float* from = s.from + c * s.channel_step + p;
      const float* weights = s.weights + c * s.weight_channel;
      for (size_t t = 0; t < size; ++t) {
        const float* at = from + taps[t].offset;
        V value[kVectors];
        for (int v = 0; v < kVectors; ++v) value[v] = load<V>(at + v * kLanes);
        for (int k = 0; k < kOut; ++k) {
          const float weight = weights[taps[t].weight + k * s.weight_result];
          const V w{weight, weight, weight, weight, weight, weight, weight, weight};
          for (int v = 0; v < kVectors; ++v) acc[k][v] += value[v] * w;
        }
      }
    }
    for (int k = 0; k < kOut; ++k)
      for (int v = 0; v < kVectors; ++v) store(s.to + k * s.to_step + p + v * kLanes, acc[k][v]);
  }
  if constexpr (kVectors > 1) make_sums<kOut, kVectors / 2>(s, taps, size, p, end);
}

// Eight sums at a time, so that none waits for itself, with as few loads as can be. Returns how
// many results it made.
template <class Tap>
int64_t make_some(const Sums& s, const std::vector<Tap>& list, int64_t results) {
  const Tap* taps = list.data();
  const size_t size = list.size();
  const int64_t made = results >= 4 ? 4 : results >= 2 ? 2 : 1;
  vectorized([=] {
    if (made == 4)
      make_sums<4, 2>(s, taps, size, 0, s.count);
    else if (made == 2)
      make_sums<2, 4>(s, taps, size, 0, s.count);
    else
      make_sums<1, 8>(s, taps, size, 0, s.count);
  });
  return made;
}

// to[k][t] += sum over p < count of result[k][p] * value[p + offset(t)].
struct Products {
  const float* results;
  int64_t result_step;
  const float* values;
  int64_t count;
  float* to;
  int64_t to_step;
};

template <int kOut, int kTaps, class Tap>
__attribute__((always_inline)) inline void add_products(const Products& q, const Tap* taps) {
  V acc[kOut][kTaps] = {};
  const float* values[kTaps];
  for (int t = 0; t < kTaps; ++t) values[t] = q.values + taps[t].offset;
  for (int64_t p = 0; p < q.count; p += kLanes) {
    V result[kOut];
    for (int k = 0; k < kOut; ++k) result[k] = load<V>(q.results + k * q.result_step + p);
    for (int t = 0; t < kTaps; ++t) {
      const V value = load<V>(values[t] + p);
      for (int k = 0; k < kOut; ++k) acc[k][t] += result[k] * value;
    }
  }
  for (int k = 0; k < kOut; ++k)
    for (int t = 0; t < kTaps; ++t) {
      const V& a = acc[k][t];
      q.to[k * q.to_step + taps[t].weight] +=
          ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7]));
    }
}

template <int kOut, int kTaps, class Tap>
__attribute__((always_inline)) inline void add_products(const Products& q, const Tap* taps,
                                                        int64_t size) {
  if constexpr (kTaps > 0) {
    if (size == kTaps) return add_products<kOut, kTaps>(q, taps);
    add_products<kOut, kTaps - 1>(q, taps, size);
  }
}

template <int kOut, class Tap>
__attribute__((always_inline)) inline void add_all(const Products& q, const Tap* taps,
                                                   int64_t size) {
  constexpr int64_t kTaps = 8 / kOut;
  const int64_t blocks = (size + kTaps - 1) / kTaps;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = size * b / blocks, end = size * (b + 1) / blocks;
    add_products<kOut, kTaps>(q, taps + begin, end - begin);
  }
}

template <class Tap>
int64_t add_some(const Products& q, const std::vector<Tap>& list, int64_t results) {
  const Tap* taps = list.data();
  const auto size = static_cast<int64_t>(list.size());
  const int64_t made = results >= 4 ? 4 : results >= 2 ? 2 : 1;
  vectorized([=] {
    if (made == 4)
      add_all<4>(q, taps, size);
    else if (made == 2)
      add_all<2>(q, taps, size);
    else
      add_all<1>(q, taps, size);
  });
  return made;
}

}  // namespace

PlaneConvolution::Axis PlaneConvolution::axis(const Convolution& c, int i) {
  const auto d = static_cast<size_t>(i);
  Axis a{c.src[2 + i],
         c.dst[2 + i],
         c.weights[2 + i],
         c.stride[d],
         c.dilation[d],
         c.pad_before[d],
         0,
         {}};
  a.reach = a.step_of(a.kernel - 1);
  for (int64_t tap = 0; tap < a.kernel; ++tap)
    if (std::find(a.phases.begin(), a.phases.end(), a.phase_of(tap)) == a.phases.end())
      a.phases.push_back(a.phase_of(tap));
  return a;
}

double PlaneConvolution::waste(ConvPass pass, const Convolution& c) {
  const Axis rows = axis(c, 0), columns = axis(c, 1);
  const bool data = pass == ConvPass::kData;
  const int64_t made = (rows.dst + (data ? rows.reach : 0)) * (columns.dst + columns.reach);
  return static_cast<double>(round_up(made, kLanes)) / static_cast<double>(rows.dst * columns.dst);
}

double PlaneConvolution::copied(const Convolution& c) {
  const Axis rows = axis(c, 0), columns = axis(c, 1);
  const auto used = static_cast<double>(rows.phases.size() * columns.phases.size()) /
                    static_cast<double>(rows.stride * columns.stride);
  return static_cast<double>(c.src.numel()) * used + static_cast<double>(c.dst.numel());
}

PlaneConvolution::PlaneConvolution(kernel::Prepare& p, ConvPass pass, const Convolution& c,
                                   const ConvOptions& options)
    : pass_(pass),
      relu_(options.relu),
      rows_(axis(c, 0)),
      columns_(axis(c, 1)),
      batch_(c.src[0]),
      groups_(c.groups),
      inputs_(c.src[1] / c.groups),
      outputs_(c.dst[1] / c.groups),
      row_(columns_.dst + columns_.reach),
      threads_(num_threads()) {
  const bool data = pass == ConvPass::kData;
  const auto phases = static_cast<int64_t>(rows_.phases.size() * columns_.phases.size());
  const int64_t copies = data                         ? outputs_
                         : pass == ConvPass::kForward ? inputs_ * phases
                                                      : inputs_ * phases + outputs_;
  // The cut depends on the shape alone, so that sums have one order for any number of threads.
  const int64_t rows = data ? rows_.dst + rows_.reach : rows_.dst;
  const int64_t fit = std::max<int64_t>(kBand / (copies * row_) - rows_.reach, rows_.reach / 2 + 1);
  const int64_t wanted = std::max<int64_t>(kParts / std::max<int64_t>(batch_ * groups_, 1), 1);
  const int64_t most = std::clamp<int64_t>(std::min(fit, (rows + wanted - 1) / wanted), 1, rows);
  bands_ = (rows + most - 1) / most;
  band_ = (rows + bands_ - 1) / bands_;
  bands_ = (rows + band_ - 1) / band_;
  // Behind a plane there is room for what the last places read, and it is zero.
  plane_ = round_up((band_ + rows_.reach) * row_ + columns_.reach + kLanes, kLanes);
  sums_ = round_up(band_ * row_, kLanes);
  room_ = copies * plane_ + (pass == ConvPass::kWeights ? 0 : 4 * sums_);
  make_taps();
  if (pass == ConvPass::kWeights) {
    pieces_ = std::clamp<int64_t>(batch_ * bands_, 1, kPieces);
    partial_ = p.scratch(static_cast<size_t>(pieces_ * c.weights.numel()) * sizeof(float));
  }
  memory_ = p.scratch(static_cast<size_t>(threads_ * room_) * sizeof(float));
}

void PlaneConvolution::make_taps() {
  const size_t across = columns_.phases.size();
  const auto place = [](const std::vector<int64_t>& all, int64_t one) {
    return static_cast<size_t>(std::find(all.begin(), all.end(), one) - all.begin());
  };
  taps_.resize(pass_ == ConvPass::kData ? rows_.phases.size() * across : 1);
  for (int64_t a = 0; a < rows_.kernel; ++a)
    for (int64_t b = 0; b < columns_.kernel; ++b) {
      const size_t phase = place(rows_.phases, rows_.phase_of(a)) * across +
                           place(columns_.phases, columns_.phase_of(b));
      const int64_t down = rows_.step_of(a), right = columns_.step_of(b);
      const int64_t weight = a * columns_.kernel + b;
      if (pass_ == ConvPass::kData)
        taps_[phase].push_back({(rows_.reach - down) * row_ + columns_.reach - right, weight});
      else
        taps_[0].push_back({static_cast<int64_t>(phase) * plane_ + down * row_ + right, weight});
    }
}

PlaneConvolution::Part PlaneConvolution::part(int64_t index) const {
  const int64_t rows = pass_ == ConvPass::kData ? rows_.dst + rows_.reach : rows_.dst;
  const int64_t first = index % bands_ * band_;
  return {index / bands_ / groups_, index / bands_ % groups_, first, std::min(band_, rows - first)};
}

void PlaneConvolution::run(const kernel::Run& r) const {
  switch (pass_) {
    case ConvPass::kForward: return run_forward(r);
    case ConvPass::kData: return run_data(r);
    case ConvPass::kWeights: return run_weights(r);
  }
}

void PlaneConvolution::run_forward(const kernel::Run& r) const {
  const float *x = r.in<float>(src_), *w = r.in<float>(weights_), *bias = r.in<float>(bias_);
  float *out = r.out<float>(dst_), *memory = r.out<float>(memory_);
  const int64_t taps = rows_.kernel * columns_.kernel, count = batch_ * groups_ * bands_;
  const auto phases = static_cast<int64_t>(rows_.phases.size() * columns_.phases.size());
  parallel_parts(count, parts_of(count), [&](int thread, int64_t begin, int64_t end) {
    float* copy = memory + thread * room_;
    float* sums = copy + inputs_ * phases * plane_;
    for (int64_t i = begin; i < end; ++i) {
      const Part at = part(i);
      copy_src(x, at, copy);
      for (int64_t o = 0; o < outputs_;) {
        const float* weights = w + (at.group * outputs_ + o) * inputs_ * taps;
        const int64_t made = make_some({copy, inputs_, phases * plane_, weights, taps,
                                        inputs_ * taps, at.rows * row_, sums, sums_},
                                       taps_[0], outputs_ - o);
        for (int64_t k = 0; k < made; ++k, ++o)
          write_dst(sums + k * sums_, at, at.group * outputs_ + o, bias, out);
      }
    }
  });
}

void PlaneConvolution::run_data(const kernel::Run& r) const {
  const float *dout = r.in<float>(dst_), *w = r.in<float>(weights_);
  float *dx = r.out<float>(src_), *memory = r.out<float>(memory_);
  const int64_t taps = rows_.kernel * columns_.kernel, count = batch_ * groups_ * bands_;
  parallel_parts(count, parts_of(count), [&](int thread, int64_t begin, int64_t end) {
    float* copy = memory + thread * room_;
    float* sums = copy + outputs_ * plane_;
    for (int64_t i = begin; i < end; ++i) {
      const Part at = part(i);
      copy_dst(dout, at, Zeros::kBefore, copy);
      clear_src(at, dx);
      for (size_t phase = 0; phase < taps_.size(); ++phase)
        for (int64_t c = 0; c < inputs_;) {
          const float* weights = w + (at.group * outputs_ * inputs_ + c) * taps;
          const int64_t made = make_some(
              {copy, outputs_, plane_, weights, inputs_ * taps, taps, at.rows * row_, sums, sums_},
              taps_[phase], inputs_ - c);
          for (int64_t k = 0; k < made; ++k, ++c)
            write_src(sums + k * sums_, at, at.group * inputs_ + c, phase, dx);
        }
    }
  });
}

void PlaneConvolution::run_weights(const kernel::Run& r) const {
  const float *x = r.in<float>(src_), *dout = r.in<float>(dst_);
  float *dw = r.out<float>(weights_), *memory = r.out<float>(memory_);
  float* partial = r.out<float>(partial_);
  const int64_t taps = rows_.kernel * columns_.kernel, per_group = outputs_ * inputs_ * taps;
  const auto phases = static_cast<int64_t>(rows_.phases.size() * columns_.phases.size());
  const int64_t count = pieces_ * groups_;
  parallel_parts(count, parts_of(count), [&](int thread, int64_t begin, int64_t end) {
    float* copy = memory + thread * room_;
    float* results = copy + inputs_ * phases * plane_;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t piece = i / groups_, group = i % groups_, all = batch_ * bands_;
      float* to = partial + i * per_group;
      std::fill(to, to + per_group, 0.0f);
      for (int64_t j = all * piece / pieces_; j < all * (piece + 1) / pieces_; ++j) {
        const Part at = part((j / bands_ * groups_ + group) * bands_ + j % bands_);
        copy_src(x, at, copy);
        copy_dst(dout, at, Zeros::kBehind, results);
        for (int64_t c = 0; c < inputs_; ++c)
          for (int64_t o = 0; o < outputs_;)
            o += add_some({results + o * plane_, plane_, copy + c * phases * plane_, at.rows * row_,
                           to + (o * inputs_ + c) * taps, inputs_ * taps},
                          taps_[0], outputs_ - o);
      }
    }
  });
  const int64_t size = groups_ * per_group, pieces = pieces_;
  parallel_for(size, 1 << 12, [=](int64_t begin, int64_t end) {
    std::copy(partial + begin, partial + end, dw + begin);
    for (int64_t piece = 1; piece < pieces; ++piece)
      for (int64_t i = begin; i < end; ++i) dw[i] += partial[piece * size + i];
  });
}

int PlaneConvolution::parts_of(int64_t count) const {
  return static_cast<int>(std::clamp<int64_t>(count, 1, threads_));
}

void PlaneConvolution::copy_src(const float* x, const Part& at, float* to) const {
  const auto phases = static_cast<int64_t>(rows_.phases.size() * columns_.phases.size());
  std::fill(to, to + inputs_ * phases * plane_, 0.0f);
  for (const int64_t down : rows_.phases)
    for (const int64_t right : columns_.phases) {
      const int64_t start = right - columns_.pad, count = at.rows + rows_.reach;
      const int64_t top = at.first * rows_.stride + down - rows_.pad;
      const Inside rows(top, rows_.stride, rows_.src, count);
      const Inside columns(start, columns_.stride, columns_.src, row_);
      const int64_t from_row = rows_.stride * columns_.src, stride = columns_.stride, row = row_;
      const int64_t width = columns.last - columns.first;
      for (int64_t c = 0; c < inputs_; ++c) {
        const int64_t channel = (at.image * groups_ + at.group) * inputs_ + c;
        const float* from = x + (channel * rows_.src + top) * columns_.src + start +
                            columns.first * stride + rows.first * from_row;
        float* first = to + c * phases * plane_ + rows.first * row + columns.first;
        const int64_t inside = rows.last - rows.first;
        vectorized([=] { gather_rows(from, from_row, stride, first, row, width, inside); });
      }
      to += plane_;
    }
}

void PlaneConvolution::copy_dst(const float* dout, const Part& at, Zeros zeros, float* to) const {
  const bool before = zeros == Zeros::kBefore;
  const int64_t above = before ? rows_.reach : 0, width = columns_.dst, row = row_;
  const Inside rows(at.first - above, 1, rows_.dst, at.rows + above);
  std::fill(to, to + outputs_ * plane_, 0.0f);
  for (int64_t o = 0; o < outputs_; ++o) {
    const int64_t channel = (at.image * groups_ + at.group) * outputs_ + o;
    const float* from = dout + (channel * rows_.dst + at.first - above) * width;
    float* first = to + o * plane_ + (before ? columns_.reach : 0);
    vectorized([=] {
      map_rows(from + rows.first * width, width, first + rows.first * row, row, width,
               rows.last - rows.first, kSame);
    });
  }
}

void PlaneConvolution::write_dst(const float* sums, const Part& at, int64_t channel,
                                 const float* bias, float* out) const {
  const float shift = bias ? bias[channel] : 0.0f, floor = relu_ ? 0.0f : -INFINITY;
  const int64_t width = columns_.dst, row = row_, rows = at.rows;
  float* to = out + ((at.image * groups_ * outputs_ + channel) * rows_.dst + at.first) * width;
  vectorized([=] {
    map_rows(
        sums, row, to, width, width,
        rows, [=]<class T>(const T& sum) __attribute__((always_inline)) {
          const T y = sum + shift, least = T{} + floor;
          return T(y < least ? least : y);
        });
  });
}

// Places between strides, and those that no window reaches.
void PlaneConvolution::clear_src(const Part& at, float* dx) const {
  if (rows_.stride == 1 && columns_.stride == 1) return;
  const int64_t first = std::clamp<int64_t>(at.first * rows_.stride - rows_.pad, 0, rows_.src);
  const bool is_last = at.first + at.rows == rows_.dst + rows_.reach;
  const int64_t last =
      is_last ? rows_.src
              : std::clamp<int64_t>((at.first + at.rows) * rows_.stride - rows_.pad, 0, rows_.src);
  for (int64_t c = 0; c < inputs_; ++c) {
    const int64_t channel = (at.image * groups_ + at.group) * inputs_ + c;
    float* plane = dx + channel * rows_.src * columns_.src;
    std::fill(plane + first * columns_.src, plane + last * columns_.src, 0.0f);
  }
}

void PlaneConvolution::write_src(const float* sums, const Part& at, int64_t channel, size_t phase,
                                 float* dx) const {
  const size_t across = columns_.phases.size();
  const int64_t down = rows_.phases[phase / across], right = columns_.phases[phase % across];
  const int64_t stride = columns_.stride, start = right - columns_.pad;
  const Inside columns(start, stride, columns_.src, row_);
  const int64_t top = at.first * rows_.stride + down - rows_.pad;
  const Inside rows(top, rows_.stride, rows_.src, at.rows);
  float* plane = dx + (at.image * groups_ * inputs_ + channel) * rows_.src * columns_.src;
  float* to = plane + top * columns_.src + start + columns.first * stride;
  const int64_t to_row = rows_.stride * columns_.src, row = row_;
  const int64_t width = columns.last - columns.first;
  const float* from = sums + columns.first;
  vectorized([=] {
    if (stride == 1)
      return map_rows(from + rows.first * row, row, to + rows.first * to_row, to_row, width,
                      rows.last - rows.first, kSame);
    for (int64_t u = rows.first; u < rows.last; ++u)
      for (int64_t i = 0; i < width; ++i) to[u * to_row + i * stride] = from[u * row + i];
  });
}

}  // namespace fleetx::ops
