#include "fleetx/ops/lib/sparse_rows.h"

#include <bit>

namespace fleetx::ops {

MergeRows::MergeRows(kernel::Prepare& p, int64_t capacity, int64_t width) : width_(width) {
  const auto row_bytes = align_up(static_cast<size_t>(width) * sizeof(float));
  buffer_stride_ = static_cast<int64_t>(row_bytes / sizeof(float));
  entries_ = p.scratch(2 * static_cast<size_t>(capacity) * sizeof(Entry));
  buffers_ = p.scratch(static_cast<size_t>(num_threads()) * row_bytes);
}

// Radix sort, least significant digit first: stable, so equal ids stay in order of position.
const MergeRows::Entry* MergeRows::sort(const int64_t* ids, int64_t count, Entry* scratch) {
  constexpr int kDigitBits = 11;
  constexpr uint64_t kDigits = uint64_t{1} << kDigitBits;
  Entry *from = scratch, *to = scratch + count;
  uint64_t largest = 0;
  bool sorted = true;
  for (int64_t i = 0; i < count; ++i) {
    from[i] = {ids[i], i};
    largest = std::max(largest, static_cast<uint64_t>(ids[i]));
    sorted = sorted && (i == 0 || ids[i - 1] <= ids[i]);
  }
  if (sorted) return from;

  const int bits = std::bit_width(largest);
  for (int shift = 0; shift < bits; shift += kDigitBits) {
    const auto digit = [&](const Entry& e) {
      return (static_cast<uint64_t>(e.id) >> shift) & (kDigits - 1);
    };
    int64_t next[kDigits] = {};
    for (int64_t i = 0; i < count; ++i) ++next[digit(from[i])];
    int64_t before = 0;
    for (int64_t& n : next) before += std::exchange(n, before);
    for (int64_t i = 0; i < count; ++i) to[next[digit(from[i])]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

const float* MergeRows::sum(const kernel::SparseRows& rows, const Entry* begin, const Entry* end,
                            float* buffer) const {
  const int64_t width = width_;
  const float* first = rows.values + begin->position * width;
  if (end - begin == 1) return first;
  for (const Entry* e = begin + 1; e < end; ++e) {
    const float* other = rows.values + e->position * width;
    vectorized([=] {
      for (int64_t j = 0; j < width; ++j) buffer[j] = first[j] + other[j];
    });
    first = buffer;
  }
  return buffer;
}

}  // namespace fleetx::ops
