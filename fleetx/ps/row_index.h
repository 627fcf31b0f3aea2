// From 64-bit ids to the numbers of rows: a hash table of buckets, each one cache line with five
// ids. An id is in the first bucket from its own on that has room for it, so a search ends at a
// bucket with room; where an id is taken out, others that went past its bucket move up. At the
// greatest load five of six ids are in their own. Bytes per id: 64 / 5 / load, about 15. Not
// thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "fleetx/base/rng.h"
#include "fleetx/ps/row_memory.h"

namespace fleetx::ps {

// The hash of an id: its shard by the upper bits, its bucket by the lower 32.
inline uint64_t hash_id(uint64_t id) { return mix(id, 0); }

class RowIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX, kElsewhere = UINT32_MAX - 1;  // no rows

  RowIndex() { reserve(1); }
  // In files of this folder (Mapping).
  explicit RowIndex(std::string folder) : folder_(std::move(folder)) { reserve(1); }

  // hash: of the id, evenly spread in its lower 32 bits.
  void prefetch(uint64_t hash) const { __builtin_prefetch(&buckets()[home(hash)]); }

  uint32_t find(uint64_t id, uint64_t hash) const {
    for (uint64_t b = home(hash);; b = next(b)) {
      const uint32_t row = find_in(buckets()[b], id);
      if (row != kElsewhere) return row;
    }
  }

  // The same without waiting for memory beyond the id's own bucket: kElsewhere is an id that may be
  // in a later one, the first two of which are being fetched then.
  uint32_t find_at_home(uint64_t id, uint64_t hash) const {
    const uint64_t b = home(hash);
    const uint32_t row = find_in(buckets()[b], id);
    if (row == kElsewhere) {
      __builtin_prefetch(&buckets()[next(b)]);
      __builtin_prefetch(&buckets()[next(next(b))]);
    }
    return row;
  }

  // The id must be absent.
  void insert(uint64_t id, uint64_t hash, uint32_t row) {
    if (size_ >= most_) reserve(grown(size_));
    put(id, hash, row);
    ++size_;
  }

  // The id must be there.
  void erase(uint64_t id, uint64_t hash) {
    for (uint64_t b = home(hash);; b = next(b)) {
      const Bucket& bucket = buckets()[b];
      for (uint32_t s = 0; s < bucket.used; ++s)
        if (bucket.ids[s] == id) return take_out(b, s);
    }
  }

  size_t size() const { return size_; }
  size_t bytes() const { return memory_.bytes(); }
  size_t capacity() const { return most_; }  // ids; more make it grow
  void reserve(size_t ids);
  // How many ids to reserve memory for when so many are there, and what that takes. Growing touches
  // all of the index, and new pages for it: a small one does not grow by sixteenths.
  static size_t grown(size_t ids) {
    return ids + std::max(ids / 16, std::min(ids / 2, kStep)) + kSlots;
  }
  static size_t bytes_for(size_t ids);

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (uint64_t b = 0; b < count_; ++b)
      for (uint32_t s = 0; s < buckets()[b].used; ++s)
        visit(buckets()[b].ids[s], buckets()[b].rows[s]);
  }

 private:
  static constexpr uint32_t kSlots = 5;
  static constexpr size_t kStep = size_t{1} << 14;  // ids, 240 KB
  struct alignas(64) Bucket {
    uint64_t ids[kSlots];
    uint32_t rows[kSlots];
    uint32_t used;
  };

  static uint32_t find_in(const Bucket& bucket, uint64_t id) {
    // All five compared without a branch: which of them it is cannot be predicted.
    uint32_t found = 0;
    for (uint32_t s = 0; s < kSlots; ++s) found |= uint32_t{bucket.ids[s] == id} << s;
    found &= (1u << bucket.used) - 1;
    if (found != 0) return bucket.rows[__builtin_ctz(found)];
    return bucket.used < kSlots ? kNone : kElsewhere;
  }
  Bucket* buckets() const { return static_cast<Bucket*>(memory_.data()); }
  // Any number of buckets, not a power of two: the table grows by sixteenths. The order of buckets
  // is that of the hashes, so growing reads and writes in sequence.
  uint64_t home(uint64_t hash) const {
    return (uint64_t{static_cast<uint32_t>(hash)} * count_) >> 32;
  }
  uint64_t next(uint64_t b) const { return b + 1 == count_ ? 0 : b + 1; }
  void put(uint64_t id, uint64_t hash, uint32_t row) {
    uint64_t b = home(hash);
    while (buckets()[b].used == kSlots) b = next(b);
    Bucket& bucket = buckets()[b];
    bucket.ids[bucket.used] = id;
    bucket.rows[bucket.used++] = row;
  }
  void take_out(uint64_t at, uint32_t slot);

  std::string folder_;
  Mapping memory_;
  uint64_t count_ = 0;  // buckets
  size_t size_ = 0, most_ = 0;
};

}  // namespace fleetx::ps
