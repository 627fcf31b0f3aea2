// From 64-bit ids to the numbers of rows: a hash table of buckets, each one cache line with six
// ids. An id is in its own bucket or in one of the next 15, the first that has room; the own bucket
// knows how far the ids went that it had no room for, so most searches end there. At the greatest
// load one id of eleven is not in its own. Bytes per id: 64 / 6 / load, 14 to 16. Not
// thread-safe.
//
// The hash of an id is a bijection, so the hash stands for the id, and what follows of it from the
// number of the bucket is not stored. Of the 80 bits of an id in its bucket, 32 are the upper half
// of the hash, and 48 are for the rest of it and the row: an index of few buckets, which say little
// of a hash, has few rows, whose numbers are small.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "fleetx/base/rng.h"
#include "fleetx/ps/row_memory.h"

namespace fleetx::ps {

// The hash of an id: its shard by the upper bits, its bucket by the lower 32.
inline uint64_t hash_id(uint64_t id) { return mix(id, 0); }
uint64_t id_of_hash(uint64_t hash);

// To the second level of the cache: the first can wait for few lines at a time, and more are asked
// for here.
inline void prefetch_line(const void* line) { __builtin_prefetch(line, 0, 1); }

class RowIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX, kElsewhere = UINT32_MAX - 1;  // no rows

  RowIndex() { reserve(1); }
  // In files of this folder (Mapping).
  explicit RowIndex(std::string folder) : folder_(std::move(folder)) { reserve(1); }

  void prefetch(uint64_t hash) const { prefetch_line(&buckets()[place_of(hash).home]); }

  uint32_t find(uint64_t hash) const {
    const Place place = place_of(hash);
    const uint32_t reach = buckets()[place.home].reach;
    uint64_t b = place.home;
    for (uint32_t distance = 0; distance <= std::min(reach, farthest_); ++distance, b = next(b)) {
      const uint32_t slot = find_in(buckets()[b], place, distance);
      if (slot != kSlots) return buckets()[b].rows[slot] & row_mask_;
    }
    return reach > kFarthest ? find_outside(hash) : kNone;
  }

  // The same without waiting for memory beyond the id's own bucket: kElsewhere is an id that may be
  // in a later one, the first two of which are being fetched then.
  uint32_t find_at_home(uint64_t hash) const {
    const Place place = place_of(hash);
    const Bucket& bucket = buckets()[place.home];
    const uint32_t slot = find_in(bucket, place, 0);
    if (slot != kSlots) [[likely]]
      return bucket.rows[slot] & row_mask_;
    if (bucket.reach == 0) return kNone;
    const uint64_t second = next(place.home);
    prefetch_line(&buckets()[second]);
    if (bucket.reach > 1) prefetch_line(&buckets()[next(second)]);
    return kElsewhere;
  }

  // The id must be absent. Rows are numbered from 0; numbers of rows that are gone are used again.
  void insert(uint64_t hash, uint32_t row) {
    if (size_ >= most_) reserve(grown(size_));
    put(hash, row);
    ++size_;
  }
  void erase(uint64_t hash);  // the id must be there

  size_t size() const { return size_; }
  size_t bytes() const { return memory_.bytes(); }
  size_t capacity() const { return most_; }  // ids; more make it grow
  void reserve(size_t ids);
  // How many ids to reserve memory for when so many are there, and what that takes. Growing touches
  // all of the index, and new pages for it: a small one grows by eighths, not by sixteenths.
  static size_t grown(size_t ids) {
    return ids + std::max(ids / 16, std::min(ids / 8, kStep)) + kSlots;
  }
  static size_t bytes_for(size_t ids);

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (uint64_t b = 0; b < count_; ++b)
      for (uint32_t s = 0; s < buckets()[b].used; ++s)
        visit(id_of_hash(hash_at(buckets()[b], b, s, count_, row_mask_)),
              buckets()[b].rows[s] & row_mask_);
    for (const auto& [hash, row] : outside_) visit(id_of_hash(hash), row);
  }

 private:
  static constexpr uint32_t kSlots = 6, kFarthest = 15;
  static constexpr size_t kStep = size_t{1} << 14;  // ids, 240 KB
  struct alignas(64) Bucket {
    uint32_t tags[kSlots];
    uint32_t rows[kSlots];  // with few buckets the upper bits are of the hash
    uint16_t rests[kSlots];
    uint32_t used : 3;
    // How far the ids are for which this is the own bucket; more than kFarthest: some are outside_.
    uint32_t reach : 5;
    uint32_t distances : 4 * kSlots;  // of each id from its own bucket
    uint32_t distance(uint32_t slot) const { return distances >> (4 * slot) & 15; }
  };
  // Where an id belongs, and what is stored of its hash.
  struct Place {
    uint64_t home;
    uint32_t tag, row_bits;
    uint16_t rest;
  };

  Bucket* buckets() const { return static_cast<Bucket*>(memory_.data()); }
  // Any number of buckets, not a power of two: the table grows by sixteenths. The order of buckets
  // is that of the hashes, so growing reads and writes in sequence. The lower half of the product
  // tells the hashes of one bucket apart by its bits that are not below row_mask_'s: they are at
  // least as far from each other as there are buckets.
  Place place_of(uint64_t hash) const {
    const uint64_t product = uint64_t{static_cast<uint32_t>(hash)} * count_;
    const auto low = static_cast<uint32_t>(product);
    return {.home = product >> 32,
            .tag = static_cast<uint32_t>(hash >> 32),
            .row_bits = low << 16 & ~row_mask_,
            .rest = static_cast<uint16_t>(low >> 16)};
  }
  // Of the id in a slot of bucket b.
  static uint64_t hash_at(const Bucket& bucket, uint64_t b, uint32_t slot, uint64_t count,
                          uint32_t row_mask);
  uint64_t next(uint64_t b) const { return b + 1 == count_ ? 0 : b + 1; }
  uint64_t after(uint64_t b, uint32_t distance) const {
    return b + distance < count_ ? b + distance : b + distance - count_;
  }

  // kSlots: it is not there.
  uint32_t find_in(const Bucket& bucket, const Place& place, uint32_t distance) const {
    // All six compared without a branch: which of them it is cannot be predicted.
    const __m128i tag = _mm_set1_epi32(static_cast<int>(place.tag));
    const auto equal = [&](uint32_t first) {
      const void* const tags = bucket.tags + first;
      const __m128i four = _mm_loadu_si128(static_cast<const __m128i*>(tags));
      return static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(four, tag))));
    };
    uint32_t found = (equal(0) | equal(2) << 2) & ((1u << bucket.used) - 1);
    for (; found != 0; found &= found - 1) {
      const auto slot = static_cast<uint32_t>(__builtin_ctz(found));
      const uint32_t other = (bucket.rests[slot] ^ place.rest) |
                             ((bucket.rows[slot] & ~row_mask_) ^ place.row_bits) |
                             (bucket.distance(slot) ^ distance);
      if (other == 0) [[likely]]
        return slot;
    }
    return kSlots;
  }
  uint32_t find_outside(uint64_t hash) const;
  void put(uint64_t hash, uint32_t row);
  static void append(Bucket& bucket, const Place& place, uint32_t row) {
    bucket.tags[bucket.used] = place.tag;
    bucket.rows[bucket.used] = place.row_bits | row;
    bucket.rests[bucket.used] = place.rest;
    ++bucket.used;
  }

  std::string folder_;
  Mapping memory_;
  uint64_t count_ = 0;     // buckets
  uint32_t row_mask_ = 0;  // of the 32 bits with a row, those that are its number
  uint32_t farthest_ = 0;  // distance
  size_t size_ = 0, most_ = 0;
  // Ids that found no room: none, but for ids that someone has chosen for that.
  std::unordered_map<uint64_t, uint32_t> outside_;  // by hash
};

}  // namespace fleetx::ps
