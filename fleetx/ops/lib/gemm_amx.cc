#include "fleetx/ops/lib/gemm_amx.h"

#include <immintrin.h>

#include "fleetx/base/cpu.h"
#include "fleetx/ops/lib/product_parts.h"
#include "fleetx/tensor/buffer.h"

// g++'s own intrinsics start from a vector that they leave uninitialized on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"

#define FLEETX_AMX __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16")))

namespace fleetx::ops::amx {
namespace {

using Bf16 = uint16_t;

// A tile has 16 lines of 32 bf16; lines are rows of a or columns of b. 32x32 results are made at a
// time, and of both operands 32 lines by 32 inner elements are a step: [part][2 tiles].
constexpr int64_t kLines = 16, kInner = 32, kTile = kLines * kInner;
constexpr int64_t kSide = 2 * kLines;
constexpr int64_t kParts = 3;  // bf16 of an f32
constexpr int64_t kPart = 2 * kTile, kStep = kParts * kPart;

// A block of b stays in the second-level cache while all of a, packed before, passes through it, 32
// rows at a time. A longer inner dimension is cut, for which c is read again. The block takes less
// than half of that cache's 2 MB: in a virtual machine, pages that two threads touch for the first
// time at the same time may lie in memory in turn, so that each thread has half of its sets.
constexpr int64_t kMaxInner = 768, kColumns = 192 * kMaxInner, kRows = 2048 * kMaxInner;
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

// Walks along an axis.
class Cursor {
 public:
  Cursor(const Axis& axis, int64_t i)
      : axis_(axis), run_(i / axis.run), offset_(axis.offset(i)), left_(axis.run - i % axis.run) {}
  int64_t offset() const { return offset_; }
  void next() {
    offset_ += axis_.stride;
    if (--left_ > 0) return;
    offset_ = axis_.start(++run_);
    left_ = axis_.run;
  }

 private:
  const Axis& axis_;
  int64_t run_, offset_, left_;
};

// A part of an operand.
struct Lines {
  const Operand& of;
  int64_t first_line, first_inner;
  int64_t lines, inner;  // zero is read behind them

  bool adjacent_inner() const { return of.inner.stride == 1; }
  Lines from(int64_t line, int64_t k) const {
    return {of, first_line + line, first_inner + k, lines - line, inner - k};
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
  const float *left = x.of.data + x.of.inner.offset(x.first_inner),
              *right = x.of.data + x.of.inner.offset(x.first_inner + 16);
  Cursor at(x.of.line, x.first_line);
  for (int64_t line = 0; line < kLines; ++line, tile += kInner, at.next()) {
    const bool there = line < x.lines;
    const Parts p = split(_mm512_maskz_loadu_ps(first(there ? x.inner : 0), left + at.offset()));
    const Parts q =
        split(_mm512_maskz_loadu_ps(first(there ? x.inner - 16 : 0), right + at.offset()));
    for (int i = 0; i < kParts; ++i)
      _mm512_store_si512(tile + i * kPart, _mm512_permutex2var_epi16(p.part[i], odd, q.part[i]));
  }
}

// Where lines are adjacent: [pair of inner elements][line][2].
FLEETX_AMX void pack_across(const Lines& x, Bf16* tile) {
  const float* data = x.of.data + x.of.line.offset(x.first_line);
  Cursor at(x.of.inner, x.first_inner);
  for (int64_t k = 0; k < kInner; k += 2, tile += 2 * kLines) {
    const auto load = [&](int64_t inner) FLEETX_AMX {
      const __m512 values =
          _mm512_maskz_loadu_ps(first(inner < x.inner ? x.lines : 0), data + at.offset());
      at.next();
      return values;
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

// 32x32 floats, the right half of which may stand elsewhere.
template <class T>
struct Square {
  T* data = nullptr;
  int64_t stride = 0, right = kLines;
};

// c = start + 32 rows of a by 32 columns of b. A stride of 0 starts all rows alike.
FLEETX_AMX __attribute__((noinline)) void multiply(const Bf16* a, const Bf16* b, int64_t steps,
                                                   Square<const float> start, Square<float> c) {
  asm volatile("" : : : "memory");  // the compiler does not know what loads of tiles read
  if (start.data) {
    const float* lower = start.data + kLines * start.stride;
    _tile_loadd(0, start.data, start.stride * 4);
    _tile_loadd(1, start.data + start.right, start.stride * 4);
    _tile_loadd(2, lower, start.stride * 4);
    _tile_loadd(3, lower + start.right, start.stride * 4);
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
  _tile_stored(1, c.data + c.right, c.stride * 4);
  _tile_stored(2, lower, c.stride * 4);
  _tile_stored(3, lower + c.right, c.stride * 4);
  asm volatile("" : : : "memory");
}

struct Target {
  const Result& c;
  Bias bias;  // null with add
  float alpha;
  bool add;
};

// c = or += alpha * sums + bias for the `height` by `width` places of c at (i, j).
FLEETX_AMX void write(const float* sums, const Target& t, int64_t i, int64_t j, int64_t height,
                      int64_t width) {
  const __m512 factor = _mm512_set1_ps(t.alpha);
  for (int64_t left = 0; left < width; left += kLines) {
    const __mmask16 there = first(width - left);
    const Bias& bias = t.bias;
    const __m512 shift =
        bias.data ? _mm512_maskz_loadu_ps(there, bias.data + bias.column.offset(j + left))
                  : _mm512_setzero_ps();
    float* column = t.c.data + t.c.column.offset(j + left);
    Cursor at(t.c.row, i);
    for (int64_t row = 0; row < height; ++row, at.next()) {
      float* to = column + at.offset();
      const __m512 old = t.add ? _mm512_maskz_loadu_ps(there, to) : shift;
      const __m512 sum = _mm512_load_ps(sums + row * kSide + left);
      _mm512_mask_storeu_ps(to, there, _mm512_fmadd_ps(sum, factor, old));
    }
  }
}

// c = or += alpha * a * b + bias for the `height` by `width` places of c at (i, j).
FLEETX_AMX void make(const Bf16* a, const Bf16* b, int64_t steps, const Target& t, int64_t i,
                     int64_t j, int64_t height, int64_t width, float* sums) {
  const bool one_run = t.c.row.run - i % t.c.row.run >= kSide;
  if (height == kSide && width == kSide && one_run && t.alpha == 1.0f) {
    const Axis& column = t.c.column;
    const Square<float> to{t.c.data + t.c.row.offset(i) + column.offset(j), t.c.row.stride,
                           column.offset(j + kLines) - column.offset(j)};
    Square<const float> start;
    if (t.add) {
      start = {to.data, to.stride, to.right};
    } else if (t.bias.data) {
      const Axis& of = t.bias.column;
      start = {t.bias.data + of.offset(j), 0, of.offset(j + kLines) - of.offset(j)};
    }
    multiply(a, b, steps, start, to);
  } else {
    multiply(a, b, steps, {}, {sums, kSide});
    write(sums, t, i, j, height, width);
  }
}

// What one thread does: the places of c that belong to the lines of a and b.
FLEETX_AMX void product(const Lines& a, const Lines& b, const Target& c) {
  if (a.lines <= 0 || b.lines <= 0) return;  // more threads than parts
  const TileConfig config;
  asm volatile("" : : "m"(config));  // g++ believes that eight bytes of it are read
  _tile_loadconfig(&config);
  Workspace& w = workspace();
  const int64_t inner = piece(a.inner, kMaxInner, kInner);
  const int64_t in_cache = kColumns / inner / kSide * kSide;  // lines
  int64_t rows = piece(a.lines, kRows / inner / kSide * kSide, kSide);
  int64_t columns = piece(b.lines, in_cache, kSide);
  // Where all of b or a fits in that cache, the other one passes through it.
  if (columns >= b.lines) {
    rows = kSide;
  } else if (rows >= a.lines && rows <= in_cache) {
    columns = kSide;
  }
  for (int64_t k = 0; k < a.inner; k += inner) {
    const int64_t steps = (std::min(inner, a.inner - k) + kInner - 1) / kInner;
    const int64_t packed = steps * kStep / kSide;  // of one line
    const Target target{c.c, k == 0 ? c.bias : Bias{}, c.alpha, k > 0 || c.add};
    for (int64_t top = 0; top < a.lines; top += rows) {
      const int64_t bottom = std::min(top + rows, a.lines);
      for (int64_t i = top; i < bottom; i += kSide)
        pack<As::kRows>(a.from(i, k), steps, w.a + (i - top) * packed);
      for (int64_t left = 0; left < b.lines; left += columns) {
        const int64_t right = std::min(left + columns, b.lines);
        for (int64_t j = left; j < right && (top == 0 || columns < b.lines); j += kSide)
          pack<As::kColumns>(b.from(j, k), steps, w.b + (j - left) * packed);
        for (int64_t i = top; i < bottom; i += kSide)
          for (int64_t j = left; j < right; j += kSide)
            make(w.a + (i - top) * packed, w.b + (j - left) * packed, steps, target,
                 a.first_line + i, b.first_line + j, std::min(kSide, bottom - i),
                 std::min(kSide, right - j), w.sums);
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

bool Product::wanted() const { return has_tiles() && rows >= 64 && columns >= 64 && inner >= 64; }

void prepare() {
  if (has_tiles()) on_every_thread([] { workspace(); });
}

void Product::run(const Operand& a, const Operand& b, const Result& c, const Bias& bias) const {
  for_each_part(rows, columns, parts_for(rows * columns * inner, kGrain), kSide, kSide,
                [&](int64_t top, int64_t bottom, int64_t left, int64_t right) {
                  product({a, top, 0, bottom - top, inner}, {b, left, 0, right - left, inner},
                          {c, bias, alpha, accumulate});
                });
}

}  // namespace fleetx::ops::amx
