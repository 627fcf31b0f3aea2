#include "fleetx/ps/row_index.h"

#include <bit>
#include <span>
#include <utility>
#include <vector>

#include "fleetx/base/error.h"

namespace fleetx::ps {
namespace {

constexpr double kLoad = 0.76;

uint64_t buckets_for(size_t ids, uint32_t slots) {
  return static_cast<uint64_t>(static_cast<double>(ids) / (slots * kLoad)) + 2;
}

// The steps of mix(id, 0) backwards, by the inverses of its factors.
constexpr uint64_t unmix(uint64_t z) {
  z ^= z >> 31 ^ z >> 62;
  z *= 0x319642b2d24d8ec3ull;
  z ^= z >> 27 ^ z >> 54;
  z *= 0x96de1b173f119089ull;
  z ^= z >> 30 ^ z >> 60;
  return z - 0x9e3779b97f4a7c15ull;
}
static_assert(unmix(mix(0, 0)) == 0 && unmix(mix(0x123456789abcdef1ull, 0)) == 0x123456789abcdef1);

}  // namespace

uint64_t id_of_hash(uint64_t hash) { return unmix(hash); }

size_t RowIndex::bytes_for(size_t ids) { return buckets_for(ids, kSlots) * sizeof(Bucket); }

uint64_t RowIndex::hash_at(const Bucket& bucket, uint64_t b, uint32_t slot, uint64_t count,
                           uint32_t row_mask) {
  const uint32_t distance = bucket.distance(slot);
  const uint64_t home = b >= distance ? b - distance : b + count - distance;
  // The product of place_of() is the first multiple of the count from here on.
  const uint64_t least =
      home << 32 | uint64_t{bucket.rests[slot]} << 16 | (bucket.rows[slot] & ~row_mask) >> 16;
  const uint64_t low = least / count + (least % count != 0 ? 1 : 0);
  return uint64_t{bucket.tags[slot]} << 32 | low;
}

uint32_t RowIndex::find_outside(uint64_t hash) const {
  const auto found = outside_.find(hash);
  return found == outside_.end() ? kNone : found->second;
}

void RowIndex::put(uint64_t hash, uint32_t row) {
  FLEETX_CHECK(row <= row_mask_ && row < kElsewhere, "row ", row, " of an index for ", most_);
  const Place place = place_of(hash);
  Bucket& home = buckets()[place.home];
  for (uint32_t distance = 0; distance <= farthest_; ++distance) {
    Bucket& bucket = buckets()[after(place.home, distance)];
    if (bucket.used == kSlots) continue;
    bucket.distances |= distance << (4 * bucket.used);
    append(bucket, place, row);
    home.reach = std::max<uint32_t>(home.reach, distance);
    return;
  }
  outside_[hash] = row;
  home.reach = kFarthest + 1;
}

void RowIndex::erase(uint64_t hash) {
  --size_;
  const Place place = place_of(hash);
  Bucket& home = buckets()[place.home];
  for (uint32_t distance = 0; distance <= std::min<uint32_t>(home.reach, farthest_); ++distance) {
    Bucket& bucket = buckets()[after(place.home, distance)];
    const uint32_t slot = find_in(bucket, place, distance);
    if (slot == kSlots) continue;
    // The last one takes its slot.
    const uint32_t last = --bucket.used, last_distance = bucket.distance(last);
    bucket.tags[slot] = bucket.tags[last];
    bucket.rows[slot] = bucket.rows[last];
    bucket.rests[slot] = bucket.rests[last];
    bucket.distances &= ~(15u << (4 * slot)) & ~(15u << (4 * last));
    if (slot != last) bucket.distances |= last_distance << (4 * slot);
    const auto someone_at = [&](uint32_t d) {
      const Bucket& there = buckets()[after(place.home, d)];
      for (uint32_t s = 0; s < there.used; ++s)
        if (there.distance(s) == d) return true;
      return false;
    };
    while (home.reach == distance && distance > 0 && !someone_at(distance)) home.reach = --distance;
    return;
  }
  outside_.erase(hash);
}

void RowIndex::reserve(size_t ids) {
  if (ids <= most_ && count_ != 0) return;
  const uint64_t count = buckets_for(ids, kSlots);
  FLEETX_CHECK(count < (uint64_t{1} << 32));
  const size_t bytes = count * sizeof(Bucket);
  const Mapping old =
      std::exchange(memory_, folder_.empty() ? Mapping(bytes) : Mapping(bytes, folder_));
  const std::span<const Bucket> old_buckets(static_cast<const Bucket*>(old.data()), count_);
  const auto old_outside = std::exchange(outside_, {});
  const uint32_t old_mask = row_mask_;
  count_ = count;
  most_ = static_cast<size_t>(static_cast<double>(count) * kSlots * kLoad);
  farthest_ = static_cast<uint32_t>(std::min<uint64_t>(kFarthest, count - 1));
  row_mask_ = count >> 16 != 0 ? UINT32_MAX : (uint32_t{1} << (15 + std::bit_width(count))) - 1;
  // Ids whose own bucket is full come last: before, they would take the room of others in the next.
  std::vector<std::pair<uint64_t, uint32_t>> later(old_outside.begin(), old_outside.end());
  for (uint64_t b = 0; b < old_buckets.size(); ++b)
    for (uint32_t s = 0; s < old_buckets[b].used; ++s) {
      const uint64_t hash = hash_at(old_buckets[b], b, s, old_buckets.size(), old_mask);
      const uint32_t row = old_buckets[b].rows[s] & old_mask;
      const Place place = place_of(hash);
      Bucket& home = buckets()[place.home];
      if (home.used < kSlots)
        append(home, place, row);
      else
        later.emplace_back(hash, row);
    }
  for (const auto& [hash, row] : later) put(hash, row);
}

}  // namespace fleetx::ps
