#include "fleetx/ps/row_index.h"

#include <span>
#include <utility>

#include "fleetx/base/error.h"

namespace fleetx::ps {
namespace {

constexpr double kLoad = 0.88;

uint64_t buckets_for(size_t ids, uint32_t slots) {
  return static_cast<uint64_t>(static_cast<double>(ids) / (slots * kLoad)) + 2;
}

}  // namespace

size_t RowIndex::bytes_for(size_t ids) { return buckets_for(ids, kSlots) * sizeof(Bucket); }

void RowIndex::take_out(uint64_t at, uint32_t slot) {
  const auto remove = [&](Bucket& bucket, uint32_t s) {
    --bucket.used;
    bucket.ids[s] = bucket.ids[bucket.used];
    bucket.rows[s] = bucket.rows[bucket.used];
  };
  const auto distance = [&](uint64_t from, uint64_t to) {
    return to >= from ? to - from : to + count_ - from;
  };
  --size_;
  bool was_full = buckets()[at].used == kSlots;
  remove(buckets()[at], slot);
  // Nobody went past a bucket with room. Past one that was full, one moves up; then the same holds
  // for the bucket that it has left.
  for (uint64_t b = next(at); was_full && b != at; b = next(b)) {
    Bucket& bucket = buckets()[b];
    was_full = bucket.used == kSlots;
    for (uint32_t s = 0; s < bucket.used; ++s) {
      if (distance(home(hash_id(bucket.ids[s])), b) < distance(at, b)) continue;
      Bucket& hole = buckets()[at];
      hole.ids[hole.used] = bucket.ids[s];
      hole.rows[hole.used++] = bucket.rows[s];
      remove(bucket, s);
      at = b;
      break;
    }
  }
}

void RowIndex::reserve(size_t ids) {
  if (ids <= most_ && count_ != 0) return;
  const uint64_t count = buckets_for(ids, kSlots);
  FLEETX_CHECK(count < (uint64_t{1} << 32));
  const size_t bytes = count * sizeof(Bucket);
  const Mapping old =
      std::exchange(memory_, folder_.empty() ? Mapping(bytes) : Mapping(bytes, folder_));
  const std::span<const Bucket> old_buckets(static_cast<const Bucket*>(old.data()), count_);
  count_ = count;
  most_ = static_cast<size_t>(static_cast<double>(count) * kSlots * kLoad);
  for (const Bucket& bucket : old_buckets)
    for (uint32_t s = 0; s < bucket.used; ++s)
      put(bucket.ids[s], hash_id(bucket.ids[s]), bucket.rows[s]);
}

}  // namespace fleetx::ps
