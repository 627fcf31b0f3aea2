// The rows of one table that a worker of a geo job trains by itself: copies of those that the
// servers keep, with the optimizer's states, and what they were at the last exchange. Rows come
// here when they are first looked up, and stay. Used by one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fleetx/ps/row_index.h"
#include "fleetx/ps/update.h"

namespace fleetx::fleet {

class GeoTable {
 public:
  GeoTable(int64_t dim, ps::UpdateRulePtr rule);

  bool has(uint64_t id) const { return row_of(id) != ps::RowIndex::kNone; }
  // A row that is not here: as the servers have it.
  void add(uint64_t id, const float* values);
  void copy(uint64_t id, float* to) const;
  // A step of the optimizer. Each id once, and all are here.
  void update(std::span<const uint64_t> ids, const float* gradients, float lr);

  // The ids that have been updated since the last exchange; then the list is empty.
  std::vector<int64_t> take_changed();
  // What was learned, value - base, as the share of one worker; the base moves by that much.
  void share(uint64_t id, float part, float* delta);
  // The servers' values take the place of the base; what is the worker's own stays on top.
  void rebase(uint64_t id, const float* values);

 private:
  uint32_t row_of(uint64_t id) const { return index_.find(ps::hash_id(id)); }
  float* record(uint32_t row) { return records_.data() + row * record_floats_; }
  float* base(uint32_t row) { return bases_.data() + row * static_cast<size_t>(dim_); }

  const int64_t dim_;
  const ps::UpdateRulePtr rule_;
  const std::vector<float> first_states_;
  const size_t record_floats_;
  std::vector<float> scalars_;
  ps::RowIndex index_;
  std::vector<float> records_, bases_;
  std::vector<bool> is_changed_;
  std::vector<int64_t> changed_;
};

}  // namespace fleetx::fleet
