// The rows of a sparse table that one server holds. A row is one record: value, then states. Ids
// are spread over shards by a hash; a thread takes a shard for all ids of a request that fall into
// it, so there is no lock per row, and threads work on different shards. Thread-safe.
//
// A request goes through its ids in small groups, several of which are under way: while the rows of
// one are copied or updated, those of others are being fetched from memory, and so are the index's
// buckets of the one after them. Without that every id waits twice for memory.
//
// With a budget (TableMemory) rows that would be beyond it are put aside on disk; without a disk a
// request that would make them is an error. What is pulled, saved and visited is the same to the
// bit wherever a row is.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "fleetx/ps/job_spec.h"
#include "fleetx/ps/row_shard.h"

namespace fleetx::ps {

// What a table may use of its server's memory.
struct TableMemory {
  MemoryBudget* budget = nullptr;  // none: any
  DiskRows* disk = nullptr;        // for rows beyond the budget; none: they are refused
  uint32_t table = 0, tables = 1;  // which of the tables that share both
};

class SparseTable {
 public:
  // threads: that will use the table at the same time.
  explicit SparseTable(const SparseSpec& spec, int threads = 1, const TableMemory& memory = {});
  ~SparseTable();
  SparseTable(const SparseTable&) = delete;
  SparseTable& operator=(const SparseTable&) = delete;

  int64_t dim() const { return dim_; }
  int64_t record_floats() const { return record_floats_; }
  int64_t rows() const;
  int64_t resident() const;  // rows in memory
  int64_t bytes() const;     // of memory, index included

  // Both are kUnsupported, and say what to do, where they would make rows for which there is
  // neither memory nor disk; a push has then changed nothing.
  //
  // rows: ids.size() x dim. Ids may repeat.
  void pull(std::span<const uint64_t> ids, float* rows, Absent absent = Absent::kMake);
  // Each id once. A push is a step: the rule's scalars advance after it.
  void push(std::span<const uint64_t> ids, const float* gradients, float lr);
  // Where rows have statistics: these were shown and clicked so often, each pair of `uses` of one
  // id. Ids that have no row are left out. Each id once.
  void count(std::span<const uint64_t> ids, const float* uses);

  // Every row, shard by shard; requests for other shards go on meanwhile.
  void for_each(const RowShard::Visit& visit);
  // The same; and from then on the table knows what has changed since.
  void begin_base(const RowShard::Visit& visit);
  using Gone = std::function<void(uint64_t id)>;
  // Of the rows that have changed since the last begin_base(), and the ids of those that were
  // dropped (some may have been made again). Those of a shard that are gone come first.
  void for_each_change(const RowShard::Visit& visit, const Gone& gone);
  // Ids that are not admitted yet, and how many pushes they have had.
  void for_each_seen(const RowShard::VisitSeen& visit);
  void put_seen(uint64_t id, int64_t count);
  // Gives a row this record, and makes it if there is none; for loading.
  void put(uint64_t id, std::span<const float> record);
  // Drops the rows that `keep` does not want and frees their memory; how many.
  int64_t drop(const RowShard::Keep& keep);
  void clear();  // all rows, and counts of ids that are not admitted yet
  // The end of a day: of a table with statistics, drops rows by them; the lowest score of those
  // that stay is the threshold, or that of the table. Of another table, drops rows whose every
  // value is at most the threshold in size, or 0.
  int64_t shrink(std::optional<float> threshold);

  // Of the rule; a table with statistics also has the number of days, as the last one.
  std::vector<float> scalars() const;
  void set_scalars(std::span<const float> scalars);

 private:
  struct Group;
  enum class Access { kRead, kChange };
  using Shard = RowShard;
  using Taken = RowShard::Taken;

  Shard& shard_of(uint64_t hash) const { return *shards_[hash >> shard_shift_]; }
  bool limited() const { return memory_.budget != nullptr; }
  // Of a record: what is pulled is its value.
  size_t touched_floats(Access access) const {
    return static_cast<size_t>(access == Access::kRead ? dim_ : record_floats_);
  }
  bool admits(uint64_t id) const;
  bool counts(Shard& shard, uint64_t id);
  uint32_t make(Shard& shard, uint64_t id, uint64_t hash);
  void check_room(std::span<const uint64_t> ids);
  [[noreturn]] void refuse() const;
  RowUse use_of(const float* record) const;
  void set_use(float* record, const RowUse& use) const;
  float day() const;
  template <class Of>
  int64_t sum(const Of& of) const;  // over the shards
  template <class Makes, class Use>
  void in_groups(std::span<const uint64_t> ids, std::span<const uint32_t> order, Access access,
                 const Makes& makes, const Use& use);
  template <class Makes, class Use>
  void in_pieces(std::span<const uint64_t> ids, std::span<const uint32_t> order, Access access,
                 const Makes& makes, const Use& use);
  template <class Use>
  void use_rows(Shard& shard, std::span<const uint32_t> piece, std::span<const uint32_t> rows,
                Access access, const Use& use);
  template <class Body>
  void by_shards(std::span<const uint64_t> ids, const Body& body);
  void push_rows(std::span<const uint64_t> ids, std::span<const uint32_t> order,
                 const float* gradients, float lr, std::span<const float> scalars);

  const SparseSpec spec_;
  const TableMemory memory_;
  const uint64_t hash_;  // of the name
  const int threads_;
  int64_t dim_, record_floats_;
  int64_t use_at_;  // where statistics begin in a record
  std::vector<float> first_states_;
  std::unique_ptr<ChunkPool> pool_;
  std::vector<std::unique_ptr<Shard>> shards_;
  int shard_shift_ = 0;
  std::atomic<bool> tracks_{false};  // changes
  mutable std::mutex scalars_mutex_;
  std::vector<float> scalars_;
  const size_t rule_scalars_;
};

}  // namespace fleetx::ps
