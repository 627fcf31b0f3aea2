// How an all-reduce is timed, the same way for every implementation: all ranks write their buffers,
// meet at a barrier, and call. A call lasts from the first rank's begin to the last one's end (MPI:
// as long as on the slowest rank, which is the same, since a rank that begins early waits); the
// result is the median of several calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace fleetx::bench {

inline constexpr size_t kSizes[] = {1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10,
                                    1 << 20, 4 << 20, 25 << 20, 100 << 20};

inline int rounds_for(size_t bytes) {
  return static_cast<int>(std::clamp<size_t>((size_t{200} << 20) / bytes, 7, 501));
}

inline double microseconds_now() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline void write_all(float* data, size_t bytes) {
  std::fill(data, data + bytes / sizeof(float), 1.0f);
}

inline double median(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<long>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace fleetx::bench
