#include "fleetx/fleet/geo_table.h"

#include <algorithm>
#include <utility>

#include "fleetx/base/error.h"

namespace fleetx::fleet {

GeoTable::GeoTable(int64_t dim, ps::UpdateRulePtr rule)
    : dim_(dim),
      rule_(std::move(rule)),
      first_states_(rule_->states()),
      record_floats_(static_cast<size_t>(dim) * (1 + first_states_.size())),
      scalars_(rule_->scalars()) {}

void GeoTable::add(uint64_t id, const float* values) {
  const auto row = static_cast<uint32_t>(is_changed_.size());
  index_.insert(ps::hash_id(id), row);
  records_.insert(records_.end(), values, values + dim_);
  for (const float state : first_states_)
    records_.insert(records_.end(), static_cast<size_t>(dim_), state);
  bases_.insert(bases_.end(), values, values + dim_);
  is_changed_.push_back(false);
}

void GeoTable::copy(uint64_t id, float* to) const {
  const uint32_t row = row_of(id);
  FLEETX_CHECK(row != ps::RowIndex::kNone, "row ", id, " is not here");
  std::copy_n(records_.data() + row * record_floats_, dim_, to);
}

void GeoTable::update(std::span<const uint64_t> ids, const float* gradients, float lr) {
  std::vector<float*> records;
  std::vector<const float*> of_record;
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint32_t row = row_of(ids[i]);
    FLEETX_CHECK(row != ps::RowIndex::kNone, "row ", ids[i], " is not here");
    records.push_back(record(row));
    of_record.push_back(gradients + static_cast<int64_t>(i) * dim_);
    if (is_changed_[row]) continue;
    is_changed_[row] = true;
    changed_.push_back(static_cast<int64_t>(ids[i]));
  }
  rule_->update(
      {.width = dim_, .lr = lr, .scalars = scalars_, .records = records, .gradients = of_record});
  rule_->advance(scalars_);
}

std::vector<int64_t> GeoTable::take_changed() {
  for (const int64_t id : changed_) is_changed_[row_of(static_cast<uint64_t>(id))] = false;
  return std::exchange(changed_, {});
}

void GeoTable::share(uint64_t id, float part, float* delta) {
  const uint32_t row = row_of(id);
  const float* const value = record(row);
  float* const from = base(row);
  for (int64_t i = 0; i < dim_; ++i) {
    delta[i] = (value[i] - from[i]) * part;
    from[i] += delta[i];
  }
}

void GeoTable::rebase(uint64_t id, const float* values) {
  const uint32_t row = row_of(id);
  float *const value = record(row), *const from = base(row);
  for (int64_t i = 0; i < dim_; ++i) {
    value[i] += values[i] - from[i];
    from[i] = values[i];
  }
}

}  // namespace fleetx::fleet
