#include "fleetx/ops/winograd.h"

#include <cmath>

#include "fleetx/base/cpu.h"

namespace fleetx {
namespace {

using V = Vector8;
constexpr int64_t kLanes = 8, kSide = 6, kPoints = kSide * kSide, kTile = 4;
constexpr int64_t kRows = 6;  // tiles that the inner product takes at a time

V all(float x) { return V{x, x, x, x, x, x, x, x}; }

// ---- the transforms of one line; a square is transformed line by line in both directions ----
struct DataLine {  // B^T
  static constexpr int kIn = 6, kOut = 6;
  static void apply(const V (&d)[6], V (&out)[6]) {
    const V even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1];
    const V near = d[4] - d[2], twice = 2 * (d[3] - d[1]);
    out[0] = 4 * d[0] - 5 * d[2] + d[4];
    out[1] = even + odd;
    out[2] = even - odd;
    out[3] = near + twice;
    out[4] = near - twice;
    out[5] = 4 * d[1] - 5 * d[3] + d[5];
  }
};
struct WeightsLine {  // G
  static constexpr int kIn = 3, kOut = 6;
  static void apply(const V (&g)[3], V (&out)[6]) {
    const V ends = (g[0] + g[2]) * (-1.0f / 6), middle = g[1] * (1.0f / 6);
    const V far = g[0] * (1.0f / 24) + g[2] * (1.0f / 6), half = g[1] * (1.0f / 12);
    out[0] = g[0] * 0.25f;
    out[1] = ends - middle;
    out[2] = ends + middle;
    out[3] = far + half;
    out[4] = far - half;
    out[5] = g[2];
  }
};
struct ResultLine {  // A^T
  static constexpr int kIn = 6, kOut = 4;
  static void apply(const V (&m)[6], V (&out)[4]) {
    const V sum = m[1] + m[2], difference = m[1] - m[2];
    const V far_sum = m[3] + m[4], far_difference = m[3] - m[4];
    out[0] = m[0] + sum + far_sum;
    out[1] = difference + 2 * far_difference;
    out[2] = sum + 4 * far_sum;
    out[3] = difference + 8 * far_difference + m[5];
  }
};
struct SpreadLine {  // A
  static constexpr int kIn = 4, kOut = 6;
  static void apply(const V (&y)[4], V (&out)[6]) {
    const V even = y[0] + y[2], odd = y[1] + y[3];
    const V far_even = y[0] + 4 * y[2], far_odd = 2 * y[1] + 8 * y[3];
    out[0] = y[0];
    out[1] = even + odd;
    out[2] = even - odd;
    out[3] = far_even + far_odd;
    out[4] = far_even - far_odd;
    out[5] = y[3];
  }
};
struct GatherLine {  // G^T
  static constexpr int kIn = 6, kOut = 3;
  static void apply(const V (&u)[6], V (&out)[3]) {
    const V near = (u[1] + u[2]) * (-1.0f / 6), far = u[3] + u[4];
    out[0] = u[0] * 0.25f + near + far * (1.0f / 24);
    out[1] = (u[2] - u[1]) * (1.0f / 6) + (u[3] - u[4]) * (1.0f / 12);
    out[2] = near + far * (1.0f / 6) + u[5];
  }
};

// put(i, j, value) for the square made from get(i, j).
template <class Line, class Get, class Put>
void transform(const Get& get, const Put& put) {
  V half[Line::kOut][Line::kIn];
  for (int j = 0; j < Line::kIn; ++j) {
    V in[Line::kIn], out[Line::kOut];
    for (int i = 0; i < Line::kIn; ++i) in[i] = get(i, j);
    Line::apply(in, out);
    for (int i = 0; i < Line::kOut; ++i) half[i][j] = out[i];
  }
  for (int i = 0; i < Line::kOut; ++i) {
    V out[Line::kOut];
    Line::apply(half[i], out);
    for (int j = 0; j < Line::kOut; ++j) put(i, j, out[j]);
  }
}

// The element (i, j) of a square of one channel block that starts at `row`, `column` of a plane;
// zero outside.
struct Window {
  const float* plane;
  int64_t height, width, row, column;

  V operator()(int i, int j) const {
    const int64_t r = row + i, c = column + j;
    if (r < 0 || r >= height || c < 0 || c >= width) return V{};
    return load<V>(plane + (r * width + c) * kLanes);
  }
  bool inside(int side) const {
    return row >= 0 && column >= 0 && row + side <= height && column + side <= width;
  }
};

// Squares are kept element by element: [36][channel block][tile][8].
template <class Line>
void transform_window(const Window& w, float* to, int64_t plane) {
  const auto put = [=](int i, int j, const V& value) {
    store(to + (i * kSide + j) * plane, value);
  };
  if (w.inside(Line::kIn)) {  // the usual case, without a test for every element
    const float* first = w.plane + (w.row * w.width + w.column) * kLanes;
    const int64_t line = w.width * kLanes;
    transform<Line>([=](int i, int j) { return load<V>(first + i * line + j * kLanes); }, put);
  } else {
    transform<Line>(w, put);
  }
}

// Six tiles by 16 outputs: m[tile][output] = sum over inputs of v[tile][input] * u[input][output].
void multiply(const float* v, int64_t v_block, const float* u, int64_t blocks, float* m0,
              float* m1) {
  V sum[kRows][2] = {};
  for (int64_t b = 0; b < blocks; ++b, v += v_block) {
#pragma GCC unroll 8
    for (int i = 0; i < kLanes; ++i, u += 2 * kLanes) {
      const V u0 = load<V>(u), u1 = load<V>(u + kLanes);
#pragma GCC unroll 6
      for (int t = 0; t < kRows; ++t) {
        const V x = all(v[t * kLanes + i]);
        sum[t][0] += x * u0;
        sum[t][1] += x * u1;
      }
    }
  }
#pragma GCC unroll 6
  for (int t = 0; t < kRows; ++t) {
    store(m0 + t * kLanes, sum[t][0]);
    if (m1) store(m1 + t * kLanes, sum[t][1]);
  }
}

// Four inputs by 16 outputs: u[input][output] += sum over tiles of v[tile][input] *
// d[tile][output].
void multiply_tiles(const float* v, const float* d0, const float* d1, int64_t tiles, float* u0,
                    float* u1) {
  constexpr int kInputs = 4;
  V sum[kInputs][2];
#pragma GCC unroll 4
  for (int i = 0; i < kInputs; ++i) {
    sum[i][0] = load<V>(u0 + i * kLanes);
    sum[i][1] = load<V>(u1 + i * kLanes);
  }
  for (int64_t t = 0; t < tiles * kLanes; t += kLanes) {
    const V y0 = load<V>(d0 + t), y1 = load<V>(d1 + t);
#pragma GCC unroll 4
    for (int i = 0; i < kInputs; ++i) {
      const V x = all(v[t + i]);
      sum[i][0] += x * y0;
      sum[i][1] += x * y1;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kInputs; ++i) {
    store(u0 + i * kLanes, sum[i][0]);
    store(u1 + i * kLanes, sum[i][1]);
  }
}

int64_t blocks_of(int64_t channels) { return (channels + kLanes - 1) / kLanes; }
int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
// Not a multiple of 4 KB: 36 of them are written side by side, and must not share cache sets.
int64_t plane_of(int64_t floats) { return round_up(floats, 1024) + 16; }

}  // namespace

bool Winograd::wanted(const Convolution& c) {
  return cpu::best_isa() == cpu::Isa::kAvx2 && winograd_pays(c) && c.pad_before[0] <= 2 &&
         c.pad_before[1] <= 2;
}

Winograd::Winograd(kernel::Prepare& p, ConvPass pass, const Convolution& c,
                   const ConvOptions& options)
    : pass_(pass), threads_(num_threads()), relu_(options.relu) {
  const Shape &in = pass == ConvPass::kData ? c.dst : c.src,
              &out = pass == ConvPass::kData ? c.src : c.dst;
  from_ = {blocks_of(in[1]), in[2], in[3]};
  to_ = {blocks_of(out[1]), out[2], out[3]};
  const bool data = pass == ConvPass::kData;
  pad_top_ = data ? 2 - c.pad_before[0] : c.pad_before[0];
  pad_left_ = data ? 2 - c.pad_before[1] : c.pad_before[1];
  outputs_ = out[1];
  rows_ = (to_.height + kTile - 1) / kTile;
  columns_ = (to_.width + kTile - 1) / kTile;
  tiles_ = in[0] * rows_ * columns_;
  const int64_t most = pass == ConvPass::kWeights ? 96 : 48;
  int64_t chunks = (tiles_ + most - 1) / most;
  if (pass != ConvPass::kWeights) chunks = round_up(chunks, threads_);
  chunk_ = round_up((tiles_ + chunks - 1) / chunks, kRows);
  v_plane_ = plane_of(from_.blocks * chunk_ * kLanes);
  m_plane_ = plane_of(to_.blocks * chunk_ * kLanes);
  u_plane_ = plane_of(round_up(to_.blocks, 2) * from_.blocks * kLanes * kLanes);
  const int64_t copies = pass == ConvPass::kWeights ? 1 : threads_;
  const auto floats = [&](int64_t n) { return p.scratch(static_cast<size_t>(n) * sizeof(float)); };
  squares_ = floats(copies * kPoints * (v_plane_ + m_plane_));
  transformed_weights_ = floats(kPoints * u_plane_);
}

void Winograd::run(const kernel::Run& r) const {
  if (pass_ == ConvPass::kWeights) return make_weights(r);
  transform_weights(r);
  make(r);
}

Winograd::Tile Winograd::tile(int64_t index) const {
  return {index / (rows_ * columns_), index / columns_ % rows_ * kTile, index % columns_ * kTile};
}

// u[36][pair of output blocks][input][16 outputs], zero for the block that an odd number lacks.
void Winograd::transform_weights(const kernel::Run& r) const {
  const float* w = r.in<float>(weights_);
  float* u = r.out<float>(transformed_weights_);
  const bool data = pass_ == ConvPass::kData;
  const int64_t block = 9 * kLanes * kLanes, inputs = from_.blocks;
  // Both blocks of a pair in turn: together they fill cache lines.
  parallel_for((to_.blocks + 1) / 2, 1, [=, this](int64_t begin, int64_t end) {
    vectorized([=, this] {
      for (int64_t i = begin * inputs; i < end * inputs; ++i) {
        for (int64_t o = i / inputs * 2; o < i / inputs * 2 + 2; ++o) {
          const int64_t b = i % inputs;
          float* to = u + ((o / 2 * inputs + b) * kLanes * 2 + o % 2) * kLanes;
          // OIhw8i8o; for the gradient of the data the other channel is the output.
          const float* g = w + (data ? b * to_.blocks + o : o * inputs + b) * block;
          for (int64_t lane = 0; lane < kLanes; ++lane, to += 2 * kLanes) {
            const auto get = [=](int y, int x) {
              if (!data) return load<V>(g + (y * 3 + x) * kLanes * kLanes + lane * kLanes);
              const float* turned = g + ((2 - y) * 3 + 2 - x) * kLanes * kLanes + lane;
              V lanes;
              for (int l = 0; l < kLanes; ++l) lanes[l] = turned[l * kLanes];
              return lanes;
            };
            const auto put = [=, this](int y, int x, const V& value) {
              store(to + (y * kSide + x) * u_plane_, value);
            };
            o < to_.blocks ? transform<WeightsLine>(get, put)
                           : transform<WeightsLine>([](int, int) { return V{}; }, put);
          }
        }
      }
    });
  });
}

void Winograd::make(const kernel::Run& r) const {
  const bool data = pass_ == ConvPass::kData;
  const float* x = r.in<float>(data ? dst_ : src_);
  float* out = r.out<float>(data ? src_ : dst_);
  const float *u = r.in<float>(transformed_weights_), *bias = r.in<float>(bias_);
  float* squares = r.out<float>(squares_);
  const int64_t chunks = (tiles_ + chunk_ - 1) / chunk_;
  parallel_parts(chunks, threads_, [=, this](int part, int64_t begin, int64_t end) {
    float* v = squares + part * kPoints * (v_plane_ + m_plane_);
    float* m = v + kPoints * v_plane_;
    vectorized([=, this] {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        const int64_t first = chunk * chunk_, count = std::min(chunk_, tiles_ - first);
        for (int64_t b = 0; b < from_.blocks; ++b)
          spread<DataLine>(x, from_, b, first, count, pad_top_, pad_left_, v, v_plane_);
        for (int64_t point = 0; point < kPoints; ++point)
          for (int64_t o = 0; o < to_.blocks; o += 2)
            for (int64_t t = 0; t < count; t += kRows) {
              float* m0 = m + point * m_plane_ + (o * chunk_ + t) * kLanes;
              multiply(v + point * v_plane_ + t * kLanes, chunk_ * kLanes,
                       u + point * u_plane_ + o * from_.blocks * kLanes * kLanes, from_.blocks, m0,
                       o + 1 < to_.blocks ? m0 + chunk_ * kLanes : nullptr);
            }
        for (int64_t o = 0; o < to_.blocks; ++o) {
          V shift{};
          for (int64_t l = 0; bias && l < std::min(kLanes, outputs_ - o * kLanes); ++l)
            shift[l] = bias[o * kLanes + l];
          const float* squares_of_o = m + o * chunk_ * kLanes;
          for (int64_t t = 0; t < count; ++t)
            write_tile(squares_of_o + t * kLanes, o, tile(first + t), shift, out);
        }
      }
    });
  });
}

template <class Line>
void Winograd::spread(const float* x, const Plane& plane, int64_t block, int64_t first,
                      int64_t count, int64_t top, int64_t left, float* to, int64_t to_plane) const {
  to += block * chunk_ * kLanes;
  for (int64_t t = 0; t < count; ++t, to += kLanes) {
    const Tile at = tile(first + t);
    const int64_t start = (at.image * plane.blocks + block) * plane.height * plane.width;
    transform_window<Line>(
        {x + start * kLanes, plane.height, plane.width, at.row - top, at.column - left}, to,
        to_plane);
  }
}

void Winograd::write_tile(const float* m, int64_t block, const Tile& at, const V& shift,
                          float* out) const {
  float* plane = out + (at.image * to_.blocks + block) * to_.height * to_.width * kLanes;
  const float floor = relu_ ? 0.0f : -INFINITY;
  transform<ResultLine>([=, this](int i, int j) { return load<V>(m + (i * kSide + j) * m_plane_); },
                        [=, this](int i, int j, const V& value) {
                          if (at.row + i >= to_.height || at.column + j >= to_.width) return;
                          const V y = value + shift;
                          store(plane + ((at.row + i) * to_.width + at.column + j) * kLanes,
                                V(y < floor ? all(floor) : y));
                        });
}

// u[36][output block][input][8 outputs] collects over the chunks in their order; each thread has
// its own elements of it, so the sums do not depend on the number of threads.
void Winograd::make_weights(const kernel::Run& r) const {
  const float *x = r.in<float>(src_), *dout = r.in<float>(dst_);
  float *v = r.out<float>(squares_), *d = v + kPoints * v_plane_;
  float *u = r.out<float>(transformed_weights_), *dw = r.out<float>(weights_);
  const int64_t inputs = from_.blocks, outputs = to_.blocks;
  for (int64_t first = 0; first < tiles_; first += chunk_) {
    const int64_t count = std::min(chunk_, tiles_ - first);
    parallel_for(inputs + outputs, 1, [=, this](int64_t begin, int64_t end) {
      vectorized([=, this] {
        for (int64_t b = begin; b < end; ++b)
          b < inputs ? spread<DataLine>(x, from_, b, first, count, pad_top_, pad_left_, v, v_plane_)
                     : spread<SpreadLine>(dout, to_, b - inputs, first, count, 0, 0, d, m_plane_);
      });
    });
    parallel_for(kPoints, 1, [=, this](int64_t begin, int64_t end) {
      vectorized([=, this] {
        for (int64_t point = begin; point < end; ++point) {
          float* sums = u + point * u_plane_;
          if (first == 0) std::fill(sums, sums + u_plane_, 0.0f);
          for (int64_t o = 0; o < outputs; o += 2)
            for (int64_t i = 0; i < inputs * kLanes; i += 4) {
              // An odd last block is multiplied with itself, into the block that pads u.
              const float* d0 = d + point * m_plane_ + o * chunk_ * kLanes;
              const float* d1 = o + 1 < outputs ? d0 + chunk_ * kLanes : d0;
              float* u0 = sums + (o * inputs * kLanes + i) * kLanes;
              multiply_tiles(v + point * v_plane_ + i / kLanes * chunk_ * kLanes + i % kLanes, d0,
                             d1, count, u0, u0 + inputs * kLanes * kLanes);
            }
        }
      });
    });
  }
  parallel_for(outputs, 1, [=, this](int64_t begin, int64_t end) {
    vectorized([=, this] {
      for (int64_t o = begin; o < end; ++o)
        for (int64_t i = 0; i < inputs * kLanes; ++i) {
          const float* from = u + (o * inputs * kLanes + i) * kLanes;
          float* to = dw + ((o * inputs + i / kLanes) * 9 * kLanes + i % kLanes) * kLanes;
          transform<GatherLine>(
              [=, this](int y, int z) { return load<V>(from + (y * kSide + z) * u_plane_); },
              [=](int y, int z, const V& value) {
                store(to + (y * 3 + z) * kLanes * kLanes, value);
              });
        }
    });
  });
}

}  // namespace fleetx
