#include "fleetx/ps/row_index.h"

#include <span>
#include <utility>

#include "fleetx/base/error.h"

namespace fleetx::ps {
namespace {

constexpr double kLoad = 0.88;

}  // namespace

void RowIndex::reserve(size_t ids) {
  if (ids <= most_ && count_ != 0) return;
  const auto count = static_cast<uint64_t>(static_cast<double>(ids) / (kSlots * kLoad)) + 2;
  FLEETX_CHECK(count < (uint64_t{1} << 32));
  const Mapping old = std::exchange(memory_, Mapping(count * sizeof(Bucket)));
  const std::span<const Bucket> old_buckets(static_cast<const Bucket*>(old.data()), count_);
  count_ = count;
  most_ = static_cast<size_t>(static_cast<double>(count) * kSlots * kLoad);
  for (const Bucket& bucket : old_buckets)
    for (uint32_t s = 0; s < bucket.used; ++s)
      put(bucket.ids[s], hash_id(bucket.ids[s]), bucket.rows[s]);
}

}  // namespace fleetx::ps
