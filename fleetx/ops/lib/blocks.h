// A list of arrays cut into blocks of a fixed size. The cut depends on nothing but the lengths, so
// a sum that keeps one partial result per block has the same bits for any number of threads, and
// for one fused op or several.
#pragma once

#include <cstdint>
#include <vector>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"

namespace fleetx::ops {

struct Block {
  size_t array;
  int64_t begin, end;
};

class Blocks {
 public:
  static constexpr int64_t kSize = 1 << 14;

  Blocks() = default;
  explicit Blocks(const std::vector<int64_t>& lengths) {
    int64_t total = 0;
    for (size_t a = 0; a < lengths.size(); ++a) {
      for (int64_t begin = 0; begin < lengths[a]; begin += kSize)
        blocks_.push_back({a, begin, std::min(begin + kSize, lengths[a])});
      total += lengths[a];
    }
    // Threads get consecutive blocks with about the same number of elements.
    const int64_t parts = parts_for(total, 2 * kSize);
    int64_t before = 0;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (before * parts >= total * static_cast<int64_t>(part_begin_.size()))
        part_begin_.push_back(b);
      before += blocks_[b].end - blocks_[b].begin;
    }
    part_begin_.push_back(blocks_.size());
  }

  size_t size() const { return blocks_.size(); }
  const Block& operator[](size_t i) const { return blocks_[i]; }

  // body(index, block) for every block, in parallel. Must not throw.
  template <class Body>
  void for_each(const Body& body) const {
    const auto parts = static_cast<int>(part_begin_.size()) - 1;
    parallel_parts(parts, parts, [&](int, int64_t first, int64_t last) {
      const size_t end = part_begin_[static_cast<size_t>(last)];
      for (size_t b = part_begin_[static_cast<size_t>(first)]; b < end; ++b) body(b, blocks_[b]);
    });
  }

 private:
  std::vector<Block> blocks_;
  std::vector<size_t> part_begin_{0};  // of each thread, and the end
};

inline double sum_of_squares(const float* x, int64_t n) {
  double sum = 0;
  vectorized([x, n, out = &sum] {
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t i = 0; i < n; ++i) s += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    *out = s;
  });
  return sum;
}

}  // namespace fleetx::ops
