#include "fleetx/data/order.h"

#include <numeric>
#include <utility>

#include "fleetx/base/rng.h"

namespace fleetx::data {

std::vector<int64_t> shuffled(int64_t n, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  const Philox random(seed, mix(stable_hash("shuffle"), static_cast<uint64_t>(epoch)));
  for (size_t i = order.size(); i > 1; --i) {
    const auto words = random.block(i);
    const uint64_t word = uint64_t{words[0]} << 32 | words[1];
    // The high half of the product is uniform in [0, i) but for a bias of i / 2^64.
    const auto j = static_cast<size_t>(static_cast<unsigned __int128>(word) * i >> 64);
    std::swap(order[i - 1], order[j]);
  }
  return order;
}

}  // namespace fleetx::data
