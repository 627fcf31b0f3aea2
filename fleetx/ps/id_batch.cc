#include "fleetx/ps/id_batch.h"

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"
#include "fleetx/base/simd.h"
#include "fleetx/ps/slicing.h"

namespace fleetx::ps {

void IdBatch::assign(std::span<const int64_t> ids, int servers) {
  check_arg(servers > 0, "ids cannot be dealt out to ", servers, " servers");
  check_arg(ids.size() < (size_t{1} << 31), "a batch of ", ids.size(), " ids; at most 2^31");
  // Open addressing at half load; a slot holds 1 + the place of an id among the unique ones.
  size_t slots = 16;
  while (slots < 2 * ids.size()) slots *= 2;
  slots_.assign(slots, 0);
  uint32_t* const table = slots_.data();
  places_.resize(ids.size());
  unique_.clear();
  unique_.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<uint64_t>(ids[i]);
    size_t slot = mix(id, 0) & (slots - 1);
    while (table[slot] != 0 && unique_[table[slot] - 1] != id) slot = (slot + 1) & (slots - 1);
    if (table[slot] == 0) {
      unique_.push_back(id);
      table[slot] = static_cast<uint32_t>(unique_.size());
    }
    places_[i] = table[slot] - 1;
  }
  begin_.assign(static_cast<size_t>(servers) + 1, 0);
  if (servers == 1) {
    begin_[1] = unique_.size();
    return;
  }
  // A stable counting sort by server.
  for (const uint64_t id : unique_) ++begin_[static_cast<size_t>(server_of(id, servers)) + 1];
  for (size_t s = 1; s < begin_.size(); ++s) begin_[s] += begin_[s - 1];
  std::vector<size_t> next(begin_.begin(), begin_.end() - 1);
  std::vector<uint32_t> moved(unique_.size());
  std::vector<uint64_t> sorted(unique_.size());
  for (size_t u = 0; u < unique_.size(); ++u) {
    const size_t to = next[static_cast<size_t>(server_of(unique_[u], servers))]++;
    moved[u] = static_cast<uint32_t>(to);
    sorted[to] = unique_[u];
  }
  unique_ = std::move(sorted);
  for (uint32_t& place : places_) place = moved[place];
}

void add_rows(std::span<const uint32_t> places, const float* rows, float* sums, int64_t dim) {
  vectorized([=, n = places.size(), place = places.data()] {
    for (size_t i = 0; i < n; ++i) {
      const float* const row = rows + static_cast<int64_t>(i) * dim;
      float* const sum = sums + int64_t{place[i]} * dim;
#pragma GCC ivdep
      for (int64_t k = 0; k < dim; ++k) sum[k] += row[k];
    }
  });
}

}  // namespace fleetx::ps
