// The ids of a batch, each once, grouped by server. Made once per batch, then used to pull its rows
// and to push their gradients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fleetx::ps {

class IdBatch {
 public:
  IdBatch() = default;
  IdBatch(std::span<const int64_t> ids, int servers) { assign(ids, servers); }
  // Another batch, in the same memory.
  void assign(std::span<const int64_t> ids, int servers);

  // Those of server s are unique()[begin(s), begin(s + 1)), in the order of their first occurrence.
  std::span<const uint64_t> unique() const { return unique_; }
  int servers() const { return static_cast<int>(begin_.size()) - 1; }
  size_t begin(int server) const { return begin_[static_cast<size_t>(server)]; }
  // For each given id its place in unique().
  std::span<const uint32_t> places() const { return places_; }

 private:
  std::vector<uint64_t> unique_;
  std::vector<uint32_t> places_;
  std::vector<size_t> begin_{0};
  std::vector<uint32_t> slots_;  // of a hash table, while it is made
};

// sums[places[i]] += rows[i], in the order of i; rows of `dim` values.
void add_rows(std::span<const uint32_t> places, const float* rows, float* sums, int64_t dim);

}  // namespace fleetx::ps
