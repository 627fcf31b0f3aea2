#include "fleetx/ops/lib/winograd.h"

#include <cmath>

#include "fleetx/base/cpu.h"

namespace fleetx::ops {
namespace {

using V = Vector8;
constexpr int64_t kLanes = 8, kSide = 6, kPoints = kSide * kSide, kTile = 4;
constexpr int64_t kRows = 6;           // tiles that the inner product takes at a time
constexpr int64_t kPair = 2 * kLanes;  // outputs that it makes, one cache line
// Few tiles: the squares of them all, 36 floats for each input, are at most 1.2 MB and stay in
// cache.
constexpr int64_t kFewSquares = 8192;

V all(float x) { return V{x, x, x, x, x, x, x, x}; }

// Two output blocks side by side: a cache line of transformed weights.
struct Pair {
  V a, b;
  friend Pair operator+(const Pair& x, const Pair& y) { return {x.a + y.a, x.b + y.b}; }
  friend Pair operator-(const Pair& x, const Pair& y) { return {x.a - y.a, x.b - y.b}; }
  friend Pair operator*(float f, const Pair& x) { return {f * x.a, f * x.b}; }
};

// ---- the transforms of one line; a square is transformed line by line in both directions ----
// The factors 1/4, -1/6, -1/6, 1/24, 1/24, 1 of the rows of G stand in B, where they cost less.
struct DataLine {  // B^T
  static constexpr int kIn = 6, kOut = 6;
  static void apply(const V (&d)[6], V (&out)[6]) {
    const V even = d[2] * (2.0f / 3) - d[4] * (1.0f / 6),
            odd = d[1] * (2.0f / 3) - d[3] * (1.0f / 6);
    const V near = (d[4] - d[2]) * (1.0f / 24), twice = (d[3] - d[1]) * (1.0f / 12);
    out[0] = d[0] - 1.25f * d[2] + 0.25f * d[4];
    out[1] = even + odd;
    out[2] = even - odd;
    out[3] = near + twice;
    out[4] = near - twice;
    out[5] = 4 * d[1] - 5 * d[3] + d[5];
  }
};
struct WeightsLine {  // G
  static constexpr int kIn = 3, kOut = 6;
  template <class T>
  static void apply(const T (&g)[3], T (&out)[6]) {
    const T ends = g[0] + g[2], far = g[0] + 4 * g[2];
    out[0] = g[0];
    out[1] = ends + g[1];
    out[2] = ends - g[1];
    out[3] = far + 2 * g[1];
    out[4] = far - 2 * g[1];
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
    const V near = u[1] + u[2], far = u[3] + u[4];
    out[0] = u[0] + near + far;
    out[1] = u[1] - u[2] + 2 * (u[3] - u[4]);
    out[2] = near + 4 * far + u[5];
  }
};

// put(i, j, value) for the square made from get(i, j).
template <class Line, class Get, class Put>
void transform(const Get& get, const Put& put) {
  using T = decltype(get(0, 0));
  T half[Line::kOut][Line::kIn];
#pragma GCC unroll 6
  for (int j = 0; j < Line::kIn; ++j) {
    T in[Line::kIn], out[Line::kOut];
#pragma GCC unroll 6
    for (int i = 0; i < Line::kIn; ++i) in[i] = get(i, j);
    Line::apply(in, out);
#pragma GCC unroll 6
    for (int i = 0; i < Line::kOut; ++i) half[i][j] = out[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < Line::kOut; ++i) {
    T out[Line::kOut];
    Line::apply(half[i], out);
#pragma GCC unroll 6
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

// Some tiles by 16 outputs: m[tile][output] = sum over inputs of v[tile][input] *
// u[input][output], added to what is there or not. The inputs of u are `u_step` apart.
template <int kTiles>
void multiply(const float* v, int64_t v_block, const float* u, int64_t u_step, int64_t blocks,
              bool add, float* m0, float* m1) {
  V sum[kTiles][2] = {};
  if (add)
#pragma GCC unroll 6
    for (int t = 0; t < kTiles; ++t) {
      sum[t][0] = load<V>(m0 + t * kLanes);
      sum[t][1] = load<V>(m1 + t * kLanes);
    }
  for (int64_t b = 0; b < blocks; ++b, v += v_block) {
#pragma GCC unroll 8
    for (int i = 0; i < kLanes; ++i, u += u_step) {
      const V u0 = load<V>(u), u1 = load<V>(u + kLanes);
#pragma GCC unroll 6
      for (int t = 0; t < kTiles; ++t) {
        const V x = all(v[t * kLanes + i]);
        sum[t][0] += x * u0;
        sum[t][1] += x * u1;
      }
    }
  }
#pragma GCC unroll 6
  for (int t = 0; t < kTiles; ++t) {
    store(m0 + t * kLanes, sum[t][0]);
    store(m1 + t * kLanes, sum[t][1]);
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

bool Winograd::wanted(ConvPass pass, const Convolution& c) {
  return cpu::best_isa() == cpu::Isa::kAvx2 && winograd_pays(pass, c) && c.pad_before[0] <= 2 &&
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
  const auto floats = [&](int64_t n) { return p.scratch(static_cast<size_t>(n) * sizeof(float)); };
  if (pass != ConvPass::kWeights && tiles_ * from_.blocks * kLanes <= kFewSquares) {
    few_ = true;
    chunk_ = round_up(tiles_, kRows);
    v_plane_ = plane_of(from_.blocks * chunk_ * kLanes);
    m_plane_ = kPair * chunk_;
    squares_ = floats(kPoints * (v_plane_ + threads_ * m_plane_));
    transformed_weights_ = floats(threads_ * kLanes * kPoints * kPair);
    return;
  }
  const int64_t most = pass == ConvPass::kWeights ? 96 : 48;
  int64_t chunks = (tiles_ + most - 1) / most;
  if (pass != ConvPass::kWeights) chunks = round_up(chunks, threads_);
  chunk_ = round_up((tiles_ + chunks - 1) / chunks, kRows);
  v_plane_ = plane_of(from_.blocks * chunk_ * kLanes);
  m_plane_ = plane_of(round_up(to_.blocks, 2) * chunk_ * kLanes);
  u_plane_ = plane_of(round_up(to_.blocks, 2) * from_.blocks * kLanes * kLanes);
  const int64_t copies = pass == ConvPass::kWeights ? 1 : threads_;
  squares_ = floats(copies * kPoints * (v_plane_ + m_plane_));
  transformed_weights_ = floats(kPoints * u_plane_);
}

void Winograd::run(const kernel::Run& r) const {
  if (pass_ == ConvPass::kWeights) return make_weights(r);
  few_ ? make_few(r) : make(r);
}

// Here and below inline: what a shared library exports is not, and would lack the vectors of its
// caller.
inline Winograd::Tile Winograd::tile(int64_t index) const {
  return {index / (rows_ * columns_), index / columns_ % rows_ * kTile, index % columns_ * kTile};
}

// Weights of a pair of output blocks and one input block, eight inputs `input_step` apart, each at
// 36 points `point_step` apart. An odd last block stands for the one that it lacks, too.
template <class PointStep, class InputStep>
void Winograd::transform_weights(const float* w, int64_t pair, int64_t input, float* u,
                                 PointStep point_step, InputStep input_step) const {
  const bool data = pass_ == ConvPass::kData;
  const float *g0 = weights_of(w, 2 * pair, input), *g1 = weights_of(w, 2 * pair + 1, input);
  for (int64_t lane = 0; lane < kLanes; ++lane, u += input_step) {
    const auto get = [=](const float* g, int y, int x) {
      if (!data) return load<V>(g + ((y * 3 + x) * kLanes + lane) * kLanes);
      const float* turned = g + ((2 - y) * 3 + 2 - x) * kLanes * kLanes + lane;
      V lanes;
      for (int l = 0; l < kLanes; ++l) lanes[l] = turned[l * kLanes];
      return lanes;
    };
    transform<WeightsLine>(
        [=](int y, int x) {
          return Pair{get(g0, y, x), get(g1, y, x)};
        },
        [=](int y, int x, const Pair& value) {
          float* to = u + (y * kSide + x) * point_step;
          store(to, value.a);
          store(to + kLanes, value.b);
        });
  }
}

// OIhw8i8o; for the gradient of the data the other channel is the output.
inline const float* Winograd::weights_of(const float* w, int64_t output, int64_t input) const {
  output = std::min(output, to_.blocks - 1);
  const int64_t block =
      pass_ == ConvPass::kData ? input * to_.blocks + output : output * from_.blocks + input;
  return w + block * 9 * kLanes * kLanes;
}

// m[tile][16 outputs] for the tiles of a chunk. A rest of four does not pay for six.
inline void Winograd::multiply_chunk(const float* v, const float* u, int64_t u_step, int64_t blocks,
                                     int64_t count, bool add, float* m) const {
  const int64_t block = chunk_ * kLanes;
  for (int64_t t = 0; t < count; t += kRows, v += kRows * kLanes, m += kRows * kLanes)
    if (count - t <= 4)
      multiply<4>(v, block, u, u_step, blocks, add, m, m + block);
    else
      multiply<kRows>(v, block, u, u_step, blocks, add, m, m + block);
}

// Output block `o` of a chunk from its squares.
inline void Winograd::write(const float* m, int64_t o, int64_t first, int64_t count,
                            const float* bias, float* out) const {
  V shift{};
  for (int64_t l = 0; bias && l < std::min(kLanes, outputs_ - o * kLanes); ++l)
    shift[l] = bias[o * kLanes + l];
  for (int64_t t = 0; t < count; ++t) write_tile(m + t * kLanes, o, tile(first + t), shift, out);
}

// Many tiles: chunk by chunk, with weights that were all transformed before,
// u[36][pair of output blocks][input][16 outputs].
void Winograd::make(const kernel::Run& r) const {
  const bool data = pass_ == ConvPass::kData;
  const float *x = r.in<float>(data ? dst_ : src_), *w = r.in<float>(weights_);
  const float* bias = r.in<float>(bias_);
  float* out = r.out<float>(data ? src_ : dst_);
  float *u = r.out<float>(transformed_weights_), *squares = r.out<float>(squares_);
  const int64_t inputs = from_.blocks * kLanes;
  parallel_for((to_.blocks + 1) / 2, 1, [=, this](int64_t begin, int64_t end) {
    vectorized([=, this] {
      for (int64_t i = begin * from_.blocks; i < end * from_.blocks; ++i)
        transform_weights(w, i / from_.blocks, i % from_.blocks, u + i * kLanes * kPair, u_plane_,
                          kPair);
    });
  });
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
            multiply_chunk(v + point * v_plane_, u + point * u_plane_ + o * kLanes * inputs, kPair,
                           from_.blocks, count, false, m + point * m_plane_ + o * chunk_ * kLanes);
        for (int64_t o = 0; o < to_.blocks; ++o)
          write(m + o * chunk_ * kLanes, o, first, count, bias, out);
      }
    });
  });
}

// Few tiles: block by block the weights are transformed, u[8 inputs][36][16 outputs], and
// multiplied while they are in the first-level cache. All of them, four times as large as they
// were, would go through memory and take as long as the products.
void Winograd::make_few(const kernel::Run& r) const {
  constexpr std::integral_constant<int64_t, kPair> kPoint;
  constexpr std::integral_constant<int64_t, kPoints * kPair> kInput;
  const bool data = pass_ == ConvPass::kData;
  const float *x = r.in<float>(data ? dst_ : src_), *w = r.in<float>(weights_);
  const float* bias = r.in<float>(bias_);
  float *out = r.out<float>(data ? src_ : dst_), *v = r.out<float>(squares_);
  float *sums = v + kPoints * v_plane_, *transformed = r.out<float>(transformed_weights_);
  parallel_for(from_.blocks, 1, [=, this](int64_t begin, int64_t end) {
    vectorized([=, this] {
      for (int64_t b = begin; b < end; ++b)
        spread<DataLine>(x, from_, b, 0, tiles_, pad_top_, pad_left_, v, v_plane_);
    });
  });
  const int64_t pairs = (to_.blocks + 1) / 2;
  parallel_parts(pairs, threads_, [=, this](int part, int64_t begin, int64_t end) {
    float *m = sums + part * kPoints * m_plane_, *u = transformed + part * kLanes * kInput;
    vectorized([=, this] {
      for (int64_t pair = begin; pair < end; ++pair) {
        for (int64_t b = 0; b < from_.blocks; ++b) {
          transform_weights(w, pair, b, u, kPoint, kInput);
          const int64_t next = (pair * from_.blocks + b + 1) % (pairs * from_.blocks);
          const float* next0 = weights_of(w, next / from_.blocks * 2, next % from_.blocks);
          const float* next1 = weights_of(w, next / from_.blocks * 2 + 1, next % from_.blocks);
          for (int64_t point = 0; point < kPoints; ++point) {
            // A block of weights has 36 cache lines. They are cold, and memory is idle now.
            __builtin_prefetch(next0 + point * 16);
            __builtin_prefetch(next1 + point * 16);
            multiply_chunk(v + point * v_plane_ + b * chunk_ * kLanes, u + point * kPoint, kInput,
                           1, tiles_, b > 0, m + point * m_plane_);
          }
        }
        for (int64_t o = 2 * pair; o < std::min(2 * pair + 2, to_.blocks); ++o)
          write(m + o % 2 * chunk_ * kLanes, o, 0, tiles_, bias, out);
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

inline void Winograd::write_tile(const float* m, int64_t block, const Tile& at, const V& shift,
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

}  // namespace fleetx::ops
