// One part of a sparse table: index and records of the ids that a hash has sent to it. Belongs to
// one thread at a time, who has taken it.
//
// Where the table has a budget, a shard asks for memory chunk by chunk. When there is no more, and
// there is a disk, it puts rows aside there: a hand goes round over the rows, and one whose uses
// since the last time are used up goes out (the clock algorithm with counts, close to "the least
// used"). Only rows that have changed are written. Rows come back by bring_in().
//
// From the first begin_base() on a shard knows which of its rows have changed since the last one,
// and which are gone: a bit of each row in memory, a number with each row on disk.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fleetx/ps/disk_rows.h"
#include "fleetx/ps/memory_budget.h"
#include "fleetx/ps/row_index.h"
#include "fleetx/ps/row_memory.h"

namespace fleetx::ps {

struct ShardMemory {
  int64_t record_floats = 0;
  int chunk_shift = 0;              // a chunk has 2^shift rows
  MemoryBudget::Share share{};      // of no budget: memory is taken as it is needed
  bool limited = false;             // there is a budget
  DiskRows* disk = nullptr;         // only with a budget
  DiskRows::Place place{}, seen{};  // of rows, and of counts of ids that are not admitted yet
};

class alignas(64) RowShard {
 public:
  RowShard(ChunkPool& pool, ShardMemory memory);

  enum class If { kFree, kAlways };
  bool take(If when = If::kAlways);  // whether this thread has it
  void release() { taken_.clear(std::memory_order_release); }
  // A thread has the shard for as long as this lives.
  class Taken {
   public:
    explicit Taken(RowShard& shard, If when = If::kAlways)
        : shard_(shard.take(when) ? &shard : nullptr) {}
    ~Taken() {
      if (shard_ != nullptr) shard_->release();
    }
    Taken(Taken&& other) noexcept : shard_(std::exchange(other.shard_, nullptr)) {}
    Taken(const Taken&) = delete;
    explicit operator bool() const { return shard_ != nullptr; }

   private:
    RowShard* shard_;
  };

  int64_t size() const { return total_; }  // rows, also those on disk
  int64_t resident() const { return static_cast<int64_t>(index_.size()); }
  int64_t bytes() const;  // of memory
  bool has_disk() const { return memory_.disk != nullptr; }

  void prefetch(uint64_t hash) const { index_.prefetch(hash); }
  uint32_t find(uint64_t hash) const { return index_.find(hash); }
  uint32_t find_at_home(uint64_t hash) const { return index_.find_at_home(hash); }
  float* row(uint32_t row) const { return rows_.row(row); }

  // Memory for the record of an id that has none; with a budget only after room().
  uint32_t add(uint64_t id, uint64_t hash) {
    ++total_;
    return add_resident(id, hash);
  }
  // How many of `wanted` rows can be added now. With a disk at least one can; rows are put aside
  // for that, so numbers of rows that were found before are not valid any more.
  size_t room(size_t wanted);
  // Of ids that are not in memory, those that are on disk are in memory then; needs room.
  void bring_in(std::span<const uint64_t> ids);

  // With a disk: a row was used. Where notes_changes(): it was changed.
  void note_use(uint32_t row) {
    if ((residents_[row].mark & kUses) != kUses) ++residents_[row].mark;
  }
  void note_change(uint32_t row) {
    if (has_disk())
      residents_[row].mark |= kChanged | kTouched;
    else if (tracks())
      touch(row);
  }
  bool notes_changes() const { return has_disk() || tracks(); }

  // Ids that are not admitted yet. Whether there is memory for so many more of them; how many
  // pushes an id has had; one more of them (how many now).
  bool seen_room(size_t ids);
  int64_t seen(uint64_t id);
  int64_t count_seen(uint64_t id);
  void forget_seen(uint64_t id);
  using VisitSeen = std::function<void(uint64_t id, int64_t count)>;
  void for_each_seen(const VisitSeen& visit);
  void put_seen(uint64_t id, int64_t count);

  using Visit = std::function<void(uint64_t id, std::span<const float> record)>;
  using Keep = std::function<bool(uint64_t id, std::span<const float> record)>;
  void for_each(const Visit& visit);  // every row
  // From now on changes are counted anew.
  void begin_base();
  bool tracks() const { return base_ > 0; }
  void for_each_change(const Visit& visit, const std::function<void(uint64_t id)>& gone);
  // Gives a row this record, and makes it if there is none. False: no memory.
  bool put(uint64_t id, uint64_t hash, std::span<const float> record);
  int64_t drop(const Keep& keep);  // how many

 private:
  // Of a row in memory, with a disk. 12 bytes of each row.
  static constexpr uint32_t kUses = 3, kChanged = 4, kFree = 8, kTouched = 16;
  struct Resident {
    uint32_t id_low = 0, id_high = 0, mark = kFree;
    uint64_t id() const { return uint64_t{id_high} << 32 | id_low; }
  };

  size_t record_bytes() const { return rows_.row_bytes(); }
  std::span<const float> record(uint32_t row) const {
    return {rows_.row(row), static_cast<size_t>(memory_.record_floats)};
  }
  size_t spare() const { return free_.size() + capacity_ - rows_.size(); }
  uint32_t add_resident(uint64_t id, uint64_t hash);
  bool grow();
  void put_aside(size_t count);
  void set_free(uint32_t row);
  void touch(uint32_t row) {
    if (row / 64 >= touched_.size())
      touched_.resize(std::max<size_t>(row / 64 + 1, rows_.size() / 64));
    touched_[row / 64] |= uint64_t{1} << (row % 64);
  }
  bool touched(uint32_t row) const;
  bool on_disk_only(uint64_t id) const { return index_.find(hash_id(id)) == RowIndex::kNone; }
  void spill_seen();
  int64_t drop_resident(const Keep& keep);
  int64_t drop_on_disk(const Keep& keep);

  std::atomic_flag taken_;
  RowIndex index_;
  RowMemory rows_;
  int64_t total_ = 0;
  ChunkPool* pool_;
  ShardMemory memory_;
  size_t capacity_ = 0;         // limited: rows that memory was asked for
  std::vector<uint32_t> free_;  // rows below rows_.size() that no id has
  std::vector<Resident> residents_;
  uint32_t hand_ = 0;
  std::unordered_map<uint64_t, int64_t> seen_;  // pushes of ids that are not admitted yet
  int64_t seen_bytes_ = 0;                      // limited: asked for
  bool seen_on_disk_ = false;
  uint32_t base_ = 0;              // how many there were; also the mark of a row on disk
  std::vector<uint64_t> touched_;  // without a disk: bits of rows
  std::vector<uint64_t> gone_;     // ids that were dropped since the last one
};

}  // namespace fleetx::ps
