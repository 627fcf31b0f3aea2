#include "fleetx/ops/gemm_amx.h"

#include <immintrin.h>

#include "fleetx/base/cpu.h"
#include "fleetx/base/threads.h"
#include "fleetx/tensor/buffer.h"

// g++'s own intrinsics start from a vector that they leave uninitialized on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"

#define FLEETX_AMX __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16")))

namespace fleetx::amx {
namespace {

using Bf16 = uint16_t;

// A tile has 16 lines of 32 bf16; lines are rows of a or columns of b. 32x32 results are made at a
// time, and of both operands 32 lines by 32 inner elements are a step: [part][2 tiles].
constexpr int64_t kLines = 16, kInner = 32, kTile = kLines * kInner;
constexpr int64_t kSide = 2 * kLines;
constexpr int64_t kParts = 3;  // bf16 of an f32
constexpr int64_t kPart = 2 * kTile, kStep = kParts * kPart;

// A block of b stays in the second-level cache (1.2 MB of 2) while all of a, packed before, passes
// through it, 32 rows at a time. A longer inner dimension is cut, for which c is read again.
constexpr int64_t kMaxInner = 768, kColumns = 256 * kMaxInner, kRows = 8 * kColumns;
constexpr int64_t kGrain = 1 << 21;  // multiplications for which a thread is worth waking

struct Workspace {
  alignas(64) Bf16 a[kRows * kParts];
  alignas(64) Bf16 b[kColumns * kParts];
  alignas(64) float sums[kSide * kSide];
};

// Kept by each thread, because steps must not allocate.
Workspace& workspace() {
  thread_local const Buffer memory = Buffer::allocate(sizeof(Workspace));
  return *static_cast<Workspace*>(memory.data());
}

// A matrix as lines: one of the strides is 1.
struct Lines {
  const float* data;
  int64_t line_stride, inner_stride;
  int64_t lines, inner;  // zero is read behind them

  bool adjacent_inner() const { return inner_stride == 1; }
  Lines from(int64_t line, int64_t k) const {
    return {data + line * line_stride + k * inner_stride, line_stride, inner_stride, lines - line,
            inner - k};
  }
};

// ---- packing: f32 to tiles of bf16, zero where the matrix ends ----

struct Parts {
  __m512i part[kParts];  // bf16 in the upper halves of the words
};

// The last part needs no rounding: it has eight bits. (A NaN stays one.)
FLEETX_AMX inline Parts split(__m512 x) {
  const __m512i half = _mm512_set1_epi32(0x8000), upper = _mm512_set1_epi32(-0x10000);
  Parts out;
  for (int i = 0; i < kParts - 1; ++i) {
    out.part[i] = _mm512_and_epi32(_mm512_add_epi32(_mm512_castps_si512(x), half), upper);
    x = _mm512_sub_ps(x, _mm512_castsi512_ps(out.part[i]));
  }
  out.part[kParts - 1] = _mm512_castps_si512(x);
  return out;
}

inline __mmask16 first(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}

// The tiles of the parts of 16 lines by 32 inner elements, kPart from one to the next. Where the
// elements of a line are adjacent they become [line][32].
FLEETX_AMX void pack_along(const Lines& x, Bf16* tile) {
  const __m512i odd =
      _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                       25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  for (int64_t line = 0; line < kLines; ++line, tile += kInner) {
    const bool there = line < x.lines;
    const float* from = x.data + (there ? line * x.line_stride : 0);
    const Parts p = split(_mm512_maskz_loadu_ps(first(there ? x.inner : 0), from));
    const Parts q = split(_mm512_maskz_loadu_ps(first(there ? x.inner - 16 : 0), from + 16));
    for (int i = 0; i < kParts; ++i)
      _mm512_store_si512(tile + i * kPart, _mm512_permutex2var_epi16(p.part[i], odd, q.part[i]));
  }
}

// Where lines are adjacent: [pair of inner elements][line][2].
FLEETX_AMX void pack_across(const Lines& x, Bf16* tile) {
  for (int64_t k = 0; k < kInner; k += 2, tile += 2 * kLines) {
    const auto load = [&](int64_t inner) FLEETX_AMX {
      const bool there = inner < x.inner;
      return _mm512_maskz_loadu_ps(first(there ? x.lines : 0),
                                   x.data + (there ? inner * x.inner_stride : 0));
    };
    const Parts p = split(load(k)), q = split(load(k + 1));
    for (int i = 0; i < kParts; ++i)
      _mm512_store_si512(
          tile + i * kPart,
          _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(p.part[i], 16), q.part[i]));
  }
}

// A tile is a matrix of 16x16 pairs.
FLEETX_AMX void transpose(Bf16* tile) {
  __m512i r[16], t[16];
  for (int i = 0; i < 16; ++i) r[i] = _mm512_load_si512(tile + i * kInner);
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      r[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + j + 2]);
      r[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + j + 2]);
    }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 16; j += 8) {
      t[i + j] = _mm512_shuffle_i32x4(r[i + j], r[i + j + 4], 0x88);
      t[i + j + 4] = _mm512_shuffle_i32x4(r[i + j], r[i + j + 4], 0xdd);
    }
  for (int i = 0; i < 8; ++i) {
    _mm512_store_si512(tile + i * kInner, _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88));
    _mm512_store_si512(tile + (i + 8) * kInner, _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd));
  }
}

enum class As { kRows, kColumns };  // tiles are [line][32], or [pair][line][2]

// 32 lines by `steps` * 32 inner elements.
template <As as>
FLEETX_AMX void pack(const Lines& x, int64_t steps, Bf16* to) {
  for (int64_t i = 0; i < 2 * steps; ++i) {
    Bf16* tile = to + i / 2 * kStep + i % 2 * kTile;
    const Lines lines = x.from(i % 2 * kLines, i / 2 * kInner);
    x.adjacent_inner() ? pack_along(lines, tile) : pack_across(lines, tile);
    if (x.adjacent_inner() != (as == As::kRows))
      for (int part = 0; part < kParts; ++part) transpose(tile + part * kPart);
  }
}

// ---- products of tiles: 0 to 3 are sums, 4 and 5 rows of a, 6 and 7 columns of b ----

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t column_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

FLEETX_AMX inline void load_rows(const Bf16* part) {
  _tile_loadd(4, part, 64);
  _tile_loadd(5, part + kTile, 64);
}
FLEETX_AMX inline void load_columns(const Bf16* part) {
  _tile_loadd(6, part, 64);
  _tile_loadd(7, part + kTile, 64);
}
FLEETX_AMX inline void multiply_add() {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

// 32x32 floats.
template <class T>
struct Square {
  T* data = nullptr;
  int64_t stride = 0;
};

// c = start + 32 rows of a by 32 columns of b. A stride of 0 starts all rows alike.
FLEETX_AMX __attribute__((noinline)) void multiply(const Bf16* a, const Bf16* b, int64_t steps,
                                                   Square<const float> start, Square<float> c) {
  asm volatile("" : : : "memory");  // the compiler does not know what loads of tiles read
  if (start.data) {
    const float* lower = start.data + kLines * start.stride;
    _tile_loadd(0, start.data, start.stride * 4);
    _tile_loadd(1, start.data + kLines, start.stride * 4);
    _tile_loadd(2, lower, start.stride * 4);
    _tile_loadd(3, lower + kLines, start.stride * 4);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t step = 0; step < steps; ++step, a += kStep, b += kStep) {
    // The six pairs of parts, in an order in which one side changes at a time.
    load_rows(a);
    load_columns(b + 2 * kPart);
    multiply_add();
    load_columns(b + kPart);
    multiply_add();
    load_rows(a + kPart);
    multiply_add();
    load_columns(b);
    multiply_add();
    load_rows(a + 2 * kPart);
    multiply_add();
    load_rows(a);
    multiply_add();
  }
  float* lower = c.data + kLines * c.stride;
  _tile_stored(0, c.data, c.stride * 4);
  _tile_stored(1, c.data + kLines, c.stride * 4);
  _tile_stored(2, lower, c.stride * 4);
  _tile_stored(3, lower + kLines, c.stride * 4);
  asm volatile("" : : : "memory");
}

// c = or += alpha * sums + bias, for `rows` by `columns` of them.
FLEETX_AMX void write(Square<const float> sums, const float* bias, float alpha, bool add,
                      Square<float> c, int64_t rows, int64_t columns) {
  const __m512 factor = _mm512_set1_ps(alpha);
  for (int64_t left = 0; left < kSide; left += kLines) {
    const __mmask16 there = first(columns - left);
    const __m512 shift = bias ? _mm512_maskz_loadu_ps(there, bias + left) : _mm512_setzero_ps();
    for (int64_t row = 0; row < rows; ++row) {
      float* to = c.data + row * c.stride + left;
      const __m512 old = add ? _mm512_maskz_loadu_ps(there, to) : shift;
      const __m512 sum = _mm512_load_ps(sums.data + row * sums.stride + left);
      _mm512_mask_storeu_ps(to, there, _mm512_fmadd_ps(sum, factor, old));
    }
  }
}

struct Target {
  Square<float> c;
  const float* bias;  // null with add
  float alpha;
  bool add;
};

// c = or += alpha * a * b + bias for the `height` by `width` places of c at (i, j).
FLEETX_AMX void make(const Bf16* a, const Bf16* b, int64_t steps, const Target& t, int64_t i,
                     int64_t j, int64_t height, int64_t width, float* sums) {
  const Square<float> to{t.c.data + i * t.c.stride + j, t.c.stride};
  const float* bias = t.bias ? t.bias + j : nullptr;
  if (height == kSide && width == kSide && t.alpha == 1.0f) {
    multiply(a, b, steps,
             t.add ? Square<const float>{to.data, to.stride} : Square<const float>{bias, 0}, to);
  } else {
    multiply(a, b, steps, {}, {sums, kSide});
    write({sums, kSide}, bias, t.alpha, t.add, to, height, width);
  }
}

// The size of equal pieces of n: multiples of `unit`, which divides `most`.
int64_t piece(int64_t n, int64_t most, int64_t unit) {
  const int64_t pieces = (n + most - 1) / most;
  return ((n + pieces - 1) / pieces + unit - 1) / unit * unit;
}

// What one thread does: `a` has as many rows, `b` as many columns as c.
FLEETX_AMX void product(const Lines& a, const Lines& b, const Target& c) {
  if (a.lines <= 0 || b.lines <= 0) return;  // more threads than parts
  const TileConfig config;
  asm volatile("" : : "m"(config));  // g++ believes that eight bytes of it are read
  _tile_loadconfig(&config);
  Workspace& w = workspace();
  const int64_t inner = piece(a.inner, kMaxInner, kInner);
  const int64_t rows = piece(a.lines, kRows / inner / kSide * kSide, kSide);
  // Where all of a fits in that cache, b passes through it instead.
  const int64_t columns =
      rows * inner <= kColumns ? kSide : piece(b.lines, kColumns / inner / kSide * kSide, kSide);
  for (int64_t k = 0; k < a.inner; k += inner) {
    const int64_t steps = (std::min(inner, a.inner - k) + kInner - 1) / kInner;
    const int64_t packed = steps * kStep / kSide;  // of one line
    const Target target = k == 0 ? c : Target{c.c, nullptr, c.alpha, true};
    for (int64_t top = 0; top < a.lines; top += rows) {
      const int64_t bottom = std::min(top + rows, a.lines);
      for (int64_t i = top; i < bottom; i += kSide)
        pack<As::kRows>(a.from(i, k), steps, w.a + (i - top) * packed);
      for (int64_t left = 0; left < b.lines; left += columns) {
        const int64_t right = std::min(left + columns, b.lines);
        for (int64_t j = left; j < right; j += kSide)
          pack<As::kColumns>(b.from(j, k), steps, w.b + (j - left) * packed);
        for (int64_t i = top; i < bottom; i += kSide)
          for (int64_t j = left; j < right; j += kSide)
            make(w.a + (i - top) * packed, w.b + (j - left) * packed, steps, target, i, j,
                 std::min(kSide, bottom - i), std::min(kSide, right - j), w.sums);
      }
    }
  }
  _tile_release();
}

bool has_tiles() {
  static const bool tiles = cpu::best_isa() >= cpu::Isa::kAmx;
  return tiles;
}

}  // namespace

bool wanted(const Gemm& g) {
  return has_tiles() && g.rows >= 64 && g.columns >= 64 && g.inner >= 64;
}

void prepare() {
  const int threads = num_threads();
  if (has_tiles()) parallel_parts(threads, threads, [](int, int64_t, int64_t) { workspace(); });
}

void run(const Gemm& g, const float* a, const float* b, float* c, const float* bias) {
  const auto stride = [](int64_t given, int64_t dense) { return given > 0 ? given : dense; };
  const int64_t stride_a = stride(g.stride_a, g.transpose_a ? g.rows : g.inner);
  const int64_t stride_b = stride(g.stride_b, g.transpose_b ? g.inner : g.columns);
  const int64_t stride_c = stride(g.stride_c, g.columns);
  const Lines rows{a, g.transpose_a ? 1 : stride_a, g.transpose_a ? stride_a : 1, g.rows, g.inner};
  const Lines columns{b, g.transpose_b ? stride_b : 1, g.transpose_b ? 1 : stride_b, g.columns,
                      g.inner};
  // Each thread makes a part of c and packs what it reads: parts with the least border are best.
  const int threads = parts_for(g.rows * g.columns * g.inner, kGrain);
  int64_t down = 1;
  const auto border = [&](int64_t d) { return g.rows / d + g.columns / (threads / d); };
  for (int64_t d = 2; d <= threads; ++d)
    if (threads % d == 0 && border(d) < border(down)) down = d;
  const int64_t across = threads / down;
  const auto cut = [](int64_t n, int64_t part, int64_t parts) {
    return std::min(n, (n + kSide - 1) / kSide * part / parts * kSide);
  };
  parallel_parts(threads, threads, [&](int part, int64_t, int64_t) {
    const int64_t top = cut(g.rows, part / across, down);
    const int64_t left = cut(g.columns, part % across, across);
    Lines my_rows = rows.from(top, 0), my_columns = columns.from(left, 0);
    my_rows.lines = cut(g.rows, part / across + 1, down) - top;
    my_columns.lines = cut(g.columns, part % across + 1, across) - left;
    product(my_rows, my_columns,
            {{c + top * stride_c + left, stride_c},
             bias ? bias + left : nullptr,
             g.alpha,
             g.accumulate});
  });
}

}  // namespace fleetx::amx
