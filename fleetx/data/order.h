// The order of samples in an epoch and each worker's share of it. The order is a function of (seed,
// epoch) alone: neither the number of workers nor of threads changes it.
#pragma once

#include <cstdint>
#include <vector>

namespace fleetx::data {

// A uniformly random permutation of 0..n-1.
std::vector<int64_t> shuffled(int64_t n, uint64_t seed, int64_t epoch);

// One worker's part: the n samples are padded to a multiple of `world` by wrapping around to the
// first ones, and worker `rank` takes every world-th. All workers get the same number.
struct Shard {
  int rank = 0;
  int world = 1;

  int64_t size(int64_t n) const { return (n + world - 1) / world; }
  // Place in the epoch's order of this worker's i-th sample.
  int64_t place(int64_t i, int64_t n) const { return (i * world + rank) % n; }
};

}  // namespace fleetx::data
