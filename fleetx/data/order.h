// The order of samples in an epoch and the shard of each worker. The order depends on (seed, epoch)
// only, not on the number of workers or threads.
#pragma once

#include <cstdint>
#include <vector>

namespace fleetx::data {

// A uniformly random permutation of 0..n-1.
std::vector<int64_t> shuffled(int64_t n, uint64_t seed, int64_t epoch);

// Handling of samples that do not divide evenly among the workers.
enum class Uneven {
  kPad,   // padded with the first samples of the epoch
  kDrop,  // dropped
};

// One worker's part: of every batch that the workers share, worker `rank` takes the rank-th run of
// samples, as if one worker's batch had been cut into `world` pieces. All workers get the same
// number.
struct Shard {
  int rank = 0;
  int world = 1;
  Uneven uneven = Uneven::kPad;

  int64_t size(int64_t n) const {
    return uneven == Uneven::kPad ? (n + world - 1) / world : n / world;
  }
  // Place in the epoch's order of sample i of a batch of `count` samples, before which each worker
  // has had `first`.
  int64_t place(int64_t first, int64_t i, int64_t count, int64_t n) const {
    return (first * world + rank * count + i) % n;
  }
};

}  // namespace fleetx::data
