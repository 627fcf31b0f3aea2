#include "fleetx/ops/lib/strided_copy.h"

#include <array>
#include <cstring>

#include "fleetx/base/error.h"
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/channels.h"

namespace fleetx::ops {
namespace {

// Units on each side of a transposed block: a cache line of them.
constexpr int64_t tile_of(int64_t unit) { return std::max<int64_t>(8, 64 / unit); }
// Tiles that lie together in the input and are done together: memory is fetched by more than a
// line.
constexpr int64_t kTiles = 4;

// Bytes of one memcpy, so that one long run keeps all threads busy.
constexpr int64_t kPiece = 256 << 10;
// Bytes worth a thread.
constexpr int64_t kGrain = 32 << 10;

int64_t blocks(int64_t n, int64_t block) { return (n + block - 1) / block; }

bool has_typed_loop(int64_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

template <int kBytes>
void copy_line(const char* in, int64_t in_stride, char* out, int64_t out_stride, int64_t n) {
  struct Unit {
    char bytes[kBytes];
  };
  Unit unit;
  if (in_stride == 0) {
    std::memcpy(&unit, in, kBytes);
    for (int64_t i = 0; i < n; ++i) std::memcpy(out + i * out_stride, &unit, kBytes);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(&unit, in + i * in_stride, kBytes);
    std::memcpy(out + i * out_stride, &unit, kBytes);
  }
}

// out[r][c] = from[c][r] for 8x8 words, which stand as far apart as in a tile. Every shuffle is one
// instruction; the halves of a vector are put together by loads.
inline void transpose_words(const float* from, Vector8 (&out)[8]) {
  constexpr int64_t kStride = tile_of(4);
  typedef float Half __attribute__((vector_size(16)));
#pragma GCC unroll 2
  for (int left = 0; left < 8; left += 4) {
    Vector8 a[4], b[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      a[i] = __builtin_shufflevector(load<Half>(from + i * kStride + left),
                                     load<Half>(from + (i + 4) * kStride + left), 0, 1, 2, 3, 4, 5,
                                     6, 7);
#pragma GCC unroll 2
    for (int i = 0; i < 4; i += 2) {
      b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
      b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      out[left + 2 * i] = __builtin_shufflevector(b[i], b[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      out[left + 2 * i + 1] = __builtin_shufflevector(b[i], b[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
}

// to[r][c] = from[c][r]. Each line of the input is read once, into a buffer: where the strides are
// multiples of 4 KB, the lines of a tile fight for the same places of the cache.
template <int kBytes>
void copy_tile(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t rows,
               int64_t columns) {
  constexpr int64_t kTile = tile_of(kBytes);
  alignas(64) char buffer[kTile * kTile * kBytes];
  if (rows == kTile && columns == kTile) {
    for (int64_t c = 0; c < kTile; ++c)
      std::memcpy(buffer + c * kTile * kBytes, from + c * from_stride, kTile * kBytes);
    if constexpr (kBytes == 4) {  // whole lines are written, for the same reason
      const auto* words = reinterpret_cast<const float*>(buffer);
      return vectorized([=] {
        for (int64_t r = 0; r < kTile; r += 8) {
          Vector8 left[8], right[8];
          transpose_words(words + r, left);
          transpose_words(words + 8 * kTile + r, right);
#pragma GCC unroll 8
          for (int64_t i = 0; i < 8; ++i) {
            auto* line = reinterpret_cast<float*>(to + (r + i) * to_stride);
            store(line, left[i]);
            store(line + 8, right[i]);
          }
        }
      });
    }
    for (int64_t r = 0; r < kTile; ++r)
      copy_line<kBytes>(buffer + r * kBytes, kTile * kBytes, to + r * to_stride, kBytes, kTile);
    return;
  }
  for (int64_t r = 0; r < rows; ++r)
    copy_line<kBytes>(from + r * kBytes, from_stride, to + r * to_stride, kBytes, columns);
}

}  // namespace

std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> out(static_cast<size_t>(shape.rank()));
  int64_t stride = 1;
  for (size_t d = out.size(); d-- > 0;) {
    out[d] = stride;
    stride *= shape[static_cast<int>(d)];
  }
  return out;
}

void zero_fill(void* data, size_t bytes) {
  parallel_for(static_cast<int64_t>(bytes), kPiece, [=](int64_t begin, int64_t end) {
    std::memset(static_cast<char*>(data) + begin, 0, static_cast<size_t>(end - begin));
  });
}

void fill(void* data, DType dtype, int64_t n, double value) {
  with_type(dtype, [=](auto zero) {
    using T = decltype(zero);
    parallel_for(n, 1 << 16,
                 [out = static_cast<T*>(data), typed = static_cast<T>(value)](
                     int64_t begin, int64_t end) { std::fill(out + begin, out + end, typed); });
  });
}

StridedCopy::StridedCopy(size_t element_bytes, const std::vector<Dim>& dims)
    : unit_(static_cast<int64_t>(element_bytes)) {
  items_ = 1;
  for (const Dim& dim : dims) {
    items_ *= dim.size;
    if (dim.size == 1) continue;
    const Dim bytes{dim.size, dim.in * unit_, dim.out * unit_};
    Dim* last = outer_.empty() ? nullptr : &outer_.back();
    if (last && last->in == bytes.size * bytes.in && last->out == bytes.size * bytes.out)
      *last = {last->size * bytes.size, bytes.in, bytes.out};
    else
      outer_.push_back(bytes);
  }
  if (items_ == 0) return;
  if (!outer_.empty() && outer_.back().in == unit_ && outer_.back().out == unit_) {
    unit_ *= outer_.back().size;
    outer_.pop_back();
  }
  set_loop();
  FLEETX_CHECK(outer_.size() <= kMaxDims, "a copy of ", outer_.size(), " dimensions");
  items_ = 1;
  for (const Dim& dim : outer_) items_ *= dim.size;
}

void StridedCopy::set_loop() {
  if (outer_.empty() || !has_typed_loop(unit_)) {
    loop_ = Loop::kRows;
    item_bytes_ = std::min(unit_, kPiece);
    if (unit_ > kPiece) outer_.push_back({blocks(unit_, kPiece), kPiece, kPiece});
    return;
  }
  inner_ = outer_.back();
  outer_.pop_back();
  loop_ = Loop::kElements;
  item_bytes_ = inner_.size * unit_;
  for (size_t d = 0; d < outer_.size() && inner_.out == unit_ && inner_.in != 0; ++d) {
    if (outer_[d].in != unit_) continue;
    loop_ = Loop::kTranspose;
    across_ = outer_[d];
    const int64_t tile = tile_of(unit_);
    const int64_t strip = kTiles * tile;
    item_bytes_ = strip * tile * unit_;
    outer_.erase(outer_.begin() + static_cast<int64_t>(d));
    outer_.push_back({blocks(across_.size, strip), strip * across_.in, strip * across_.out});
    outer_.push_back({blocks(inner_.size, tile), tile * inner_.in, tile * inner_.out});
    return;
  }
}

std::string_view StridedCopy::kind() const {
  if (loop_ == Loop::kTranspose) return "transpose";
  if (loop_ == Loop::kElements) return "elements";
  return items_ * kPiece <= unit_ + kPiece ? "memcpy" : "rows";
}

// action(in, out, block, inner_block) for every step; the blocks are the last two coordinates.
template <class Action>
void StridedCopy::for_each(const char* in, char* out, const Action& action) const {
  const int dims = static_cast<int>(outer_.size());
  parallel_for(items_, std::max<int64_t>(1, kGrain / item_bytes_), [&](int64_t begin, int64_t end) {
    if (dims == 0) return action(in, out, 0, 0);
    std::array<int64_t, kMaxDims> at{};
    const char* from = in;
    char* to = out;
    int64_t rest = begin;
    for (int d = dims - 1; d >= 0; --d) {
      const Dim& dim = outer_[static_cast<size_t>(d)];
      at[static_cast<size_t>(d)] = rest % dim.size;
      from += rest % dim.size * dim.in;
      to += rest % dim.size * dim.out;
      rest /= dim.size;
    }
    const Dim last = outer_.back();
    int64_t& column = at[static_cast<size_t>(dims - 1)];
    for (int64_t i = begin; i < end;) {
      const int64_t row = dims > 1 ? at[static_cast<size_t>(dims - 2)] : 0;
      for (; column < last.size && i < end; ++column, ++i) {
        action(from, to, row, column);
        from += last.in;
        to += last.out;
      }
      for (int d = dims - 1; d >= 0; --d) {
        const Dim& dim = outer_[static_cast<size_t>(d)];
        int64_t& coordinate = at[static_cast<size_t>(d)];
        if (coordinate < dim.size) break;
        coordinate = 0;
        from -= dim.size * dim.in;
        to -= dim.size * dim.out;
        if (d == 0) break;
        ++at[static_cast<size_t>(d - 1)];
        from += outer_[static_cast<size_t>(d - 1)].in;
        to += outer_[static_cast<size_t>(d - 1)].out;
      }
    }
  });
}

template <int kBytes>
void StridedCopy::run_typed(const char* in, char* out) const {
  constexpr int64_t kTile = tile_of(kBytes);
  const Dim inner = inner_, across = across_;
  if (loop_ == Loop::kElements) {
    return for_each(in, out, [=](const char* from, char* to, int64_t, int64_t) {
      copy_line<kBytes>(from, inner.in, to, inner.out, inner.size);
    });
  }
  for_each(in, out, [=](const char* from, char* to, int64_t row, int64_t column) {
    const int64_t rows = std::min(kTiles * kTile, across.size - row * kTiles * kTile);
    const int64_t columns = std::min(kTile, inner.size - column * kTile);
    for (int64_t r = 0; r < rows; r += kTile)
      copy_tile<kBytes>(from + r * kBytes, inner.in, to + r * across.out, across.out,
                        std::min(kTile, rows - r), columns);
  });
}

void StridedCopy::run(const void* in_data, void* out_data) const {
  if (items_ == 0) return;
  const auto* in = static_cast<const char*>(in_data);
  auto* out = static_cast<char*>(out_data);
  if (loop_ == Loop::kRows) {
    const int64_t unit = unit_, piece = item_bytes_;
    return for_each(in, out, [=](const char* from, char* to, int64_t, int64_t column) {
      const auto bytes = unit <= kPiece ? unit : std::min(piece, unit - column * piece);
      std::memcpy(to, from, static_cast<size_t>(bytes));
    });
  }
  switch (unit_) {
    case 1: return run_typed<1>(in, out);
    case 2: return run_typed<2>(in, out);
    case 4: return run_typed<4>(in, out);
    case 8: return run_typed<8>(in, out);
    default: return run_typed<16>(in, out);
  }
}

}  // namespace fleetx::ops
