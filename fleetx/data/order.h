// The order of samples in an epoch and each worker's share of it. The order is a function of (seed,
// epoch) alone: neither the number of workers nor of threads changes it.
#pragma once

#include <cstdint>
#include <vector>

namespace fleetx::data {

// A uniformly random permutation of 0..n-1.
std::vector<int64_t> shuffled(int64_t n, uint64_t seed, int64_t epoch);

// What happens to samples that cannot be shared equally.
enum class Uneven {
  kPad,   // they are filled up with the first ones of the epoch
  kDrop,  // they are left out
};

// One worker's part: worker `rank` takes every world-th of the n samples. All workers get the same
// number.
struct Shard {
  int rank = 0;
  int world = 1;
  Uneven uneven = Uneven::kPad;

  int64_t size(int64_t n) const {
    return uneven == Uneven::kPad ? (n + world - 1) / world : n / world;
  }
  // Place in the epoch's order of this worker's i-th sample.
  int64_t place(int64_t i, int64_t n) const { return (i * world + rank) % n; }
};

}  // namespace fleetx::data
