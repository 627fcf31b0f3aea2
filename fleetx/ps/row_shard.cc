#include "fleetx/ps/row_shard.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "fleetx/base/error.h"

namespace fleetx::ps {
namespace {

constexpr size_t kPutAside = 1024;  // rows at least, so that they are written together
// A row goes out at the latest when the hand comes for the fourth time: it has three uses at most.
constexpr int kRounds = 5;
constexpr int64_t kSeenBytes = 48, kSeenStep = 1024;  // of a count; so many are asked for at once

}  // namespace

bool RowShard::take(If when) {
  constexpr int kSpins = 1000;  // longer waits are for disks
  for (int spin = 0; taken_.test_and_set(std::memory_order_acquire); ++spin) {
    if (when == If::kFree) return false;
    if (spin < kSpins)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

RowShard::RowShard(ChunkPool& pool, ShardMemory memory)
    : rows_(pool, memory.record_floats, memory.chunk_shift),
      pool_(&pool),
      memory_(std::move(memory)) {}

int64_t RowShard::bytes() const {
  return static_cast<int64_t>(index_.bytes() + index_.size() * record_bytes() +
                              residents_.size() * sizeof(Resident) + seen_.size() * kSeenBytes);
}

// --- memory --------------------------------------------------------------------------------------

uint32_t RowShard::add_resident(uint64_t id, uint64_t hash) {
  uint32_t row = 0;
  if (free_.empty()) {
    row = rows_.add();
  } else {
    row = free_.back();
    free_.pop_back();
  }
  index_.insert(hash, row);
  if (has_disk()) residents_[row] = {static_cast<uint32_t>(id), static_cast<uint32_t>(id >> 32), 0};
  return row;
}

void RowShard::set_free(uint32_t row) {
  const uint64_t id = residents_[row].id();
  index_.erase(hash_id(id));
  residents_[row] = {};
  free_.push_back(row);
}

// Asks for a chunk of rows, and for the index that they will need.
bool RowShard::grow() {
  const size_t more = size_t{1} << memory_.chunk_shift, rows = capacity_ + more;
  const size_t index_rows =
      rows <= index_.capacity() ? index_.capacity() : std::max(rows, RowIndex::grown(capacity_));
  const size_t index_bytes =
      rows <= index_.capacity() ? index_.bytes() : RowIndex::bytes_for(index_rows);
  const size_t mark_bytes = has_disk() ? more * sizeof(Resident) : 0;
  if (!memory_.share.take(static_cast<int64_t>(more * record_bytes() + mark_bytes + index_bytes) -
                          static_cast<int64_t>(index_.bytes())))
    return false;
  index_.reserve(index_rows);
  capacity_ = rows;
  if (has_disk()) {
    residents_.reserve(index_.capacity());
    residents_.resize(capacity_);
  }
  return true;
}

size_t RowShard::room(size_t wanted) {
  while (spare() < wanted && grow()) {
  }
  if (spare() < wanted && has_disk()) {
    // Half of the rows stay, for the next piece of the same request.
    wanted = std::min(wanted, std::max<size_t>(1, capacity_ / 2));
    if (spare() < wanted) put_aside(wanted - spare() + std::min(kPutAside, capacity_ / 16));
  }
  return std::min(wanted, spare());
}

// --- disk ----------------------------------------------------------------------------------------

void RowShard::put_aside(size_t count) {
  std::vector<uint64_t> changed;
  std::vector<const float*> records;
  std::vector<DiskRows::Mark> marks;
  std::vector<uint32_t> out;
  const uint32_t rows = rows_.size();
  for (uint64_t left = uint64_t{kRounds} * rows; left > 0 && out.size() < count; --left) {
    const uint32_t row = hand_;
    hand_ = hand_ + 1 < rows ? hand_ + 1 : 0;
    Resident& resident = residents_[row];
    if ((resident.mark & kFree) != 0) continue;
    if ((resident.mark & kUses) != 0) {
      --resident.mark;
      continue;
    }
    if ((resident.mark & kChanged) != 0) {
      changed.push_back(resident.id());
      records.push_back(rows_.row(row));
      marks.push_back((resident.mark & kTouched) != 0 ? base_ : 0);
    }
    resident.mark |= kFree;  // not twice
    out.push_back(row);
  }
  try {
    memory_.disk->write(memory_.place, changed, records, marks, record_bytes());
  } catch (...) {
    for (const uint32_t row : out) residents_[row].mark &= ~kFree;
    throw;
  }
  for (const uint32_t row : out) set_free(row);
}

void RowShard::bring_in(std::span<const uint64_t> ids) {
  if (total_ == resident()) return;  // all rows are in memory
  const auto found = [&](size_t i, const void* record, DiskRows::Mark mark) {
    const uint64_t hash = hash_id(ids[i]);
    if (index_.find(hash) != RowIndex::kNone) return;  // an id may stand there twice
    const uint32_t row = add_resident(ids[i], hash);
    std::memcpy(rows_.row(row), record, record_bytes());
    if (tracks() && mark == base_) residents_[row].mark |= kTouched;
  };
  memory_.disk->read(memory_.place, ids, record_bytes(), found);
}

// --- ids that are not admitted yet ---------------------------------------------------------------

bool RowShard::seen_room(size_t ids) {
  while (memory_.limited && static_cast<int64_t>(seen_.size() + ids) * kSeenBytes > seen_bytes_) {
    if (!memory_.share.take(kSeenStep * kSeenBytes)) return false;
    seen_bytes_ += kSeenStep * kSeenBytes;
  }
  return true;
}

int64_t RowShard::seen(uint64_t id) {
  const auto found = seen_.find(id);
  if (found != seen_.end()) return found->second;
  int64_t count = 0;
  if (seen_on_disk_)
    memory_.disk->read(memory_.seen, {&id, 1}, sizeof count, [&](size_t, const void* bytes, auto) {
      std::memcpy(&count, bytes, sizeof count);
    });
  return count;
}

int64_t RowShard::count_seen(uint64_t id) {
  const int64_t count = seen(id) + 1;
  put_seen(id, count);
  return count;
}

void RowShard::put_seen(uint64_t id, int64_t count) {
  if (has_disk() && !seen_.empty() && !seen_room(1)) spill_seen();
  seen_[id] = count;
}

void RowShard::for_each_seen(const VisitSeen& visit) {
  for (const auto& [id, count] : seen_) visit(id, count);
  if (!seen_on_disk_) return;
  memory_.disk->for_each(memory_.seen, [&](uint64_t id, const void* bytes, auto) {
    int64_t count = 0;
    std::memcpy(&count, bytes, sizeof count);
    if (!seen_.contains(id)) visit(id, count);
  });
}

void RowShard::forget_seen(uint64_t id) {
  seen_.erase(id);
  if (seen_on_disk_) memory_.disk->erase(memory_.seen, {&id, 1});
}

void RowShard::spill_seen() {
  static_assert(sizeof(int64_t) == 2 * sizeof(float));
  std::vector<uint64_t> ids;
  std::vector<const float*> counts;
  for (const auto& [id, count] : seen_) {
    ids.push_back(id);
    counts.push_back(reinterpret_cast<const float*>(&count));
  }
  const std::vector<DiskRows::Mark> marks(ids.size());
  memory_.disk->write(memory_.seen, ids, counts, marks, sizeof(int64_t));
  seen_.clear();
  seen_on_disk_ = true;
}

// --- all rows ------------------------------------------------------------------------------------

void RowShard::for_each(const Visit& visit) {
  index_.for_each([&](uint64_t id, uint32_t row) { visit(id, record(row)); });
  if (!has_disk() || total_ == resident()) return;
  std::vector<float> aligned(static_cast<size_t>(memory_.record_floats));
  memory_.disk->for_each(memory_.place, [&](uint64_t id, const void* bytes, auto) {
    if (!on_disk_only(id)) return;
    std::memcpy(aligned.data(), bytes, record_bytes());
    visit(id, aligned);
  });
}

bool RowShard::touched(uint32_t row) const {
  if (has_disk()) return (residents_[row].mark & kTouched) != 0;
  return row / 64 < touched_.size() && (touched_[row / 64] >> (row % 64) & 1) != 0;
}

void RowShard::begin_base() {
  ++base_;
  gone_.clear();
  touched_.assign(touched_.size(), 0);
  for (Resident& resident : residents_) resident.mark &= ~kTouched;
}

void RowShard::for_each_change(const Visit& visit, const std::function<void(uint64_t id)>& gone) {
  for (const uint64_t id : gone_) gone(id);
  index_.for_each([&](uint64_t id, uint32_t row) {
    if (touched(row)) visit(id, record(row));
  });
  if (!has_disk() || total_ == resident()) return;
  std::vector<float> aligned(static_cast<size_t>(memory_.record_floats));
  memory_.disk->for_each(memory_.place, [&](uint64_t id, const void* bytes, DiskRows::Mark mark) {
    if (mark != base_ || !on_disk_only(id)) return;
    std::memcpy(aligned.data(), bytes, record_bytes());
    visit(id, aligned);
  });
}

bool RowShard::put(uint64_t id, uint64_t hash, std::span<const float> values) {
  uint32_t found = index_.find(hash);
  if (found == RowIndex::kNone) {
    if (memory_.limited && room(1) == 0) return false;
    if (has_disk()) bring_in({&id, 1});
    found = index_.find(hash);
    if (found == RowIndex::kNone) found = add(id, hash);
  }
  std::ranges::copy(values, rows_.row(found));
  note_change(found);
  return true;
}

int64_t RowShard::drop(const Keep& keep) {
  const int64_t dropped = has_disk() ? drop_on_disk(keep) : drop_resident(keep);
  total_ -= dropped;
  return dropped;
}

// Into new memory, so that what is free can be given back.
int64_t RowShard::drop_resident(const Keep& keep) {
  std::vector<std::pair<uint64_t, uint32_t>> kept;
  index_.for_each([&](uint64_t id, uint32_t row) {
    if (keep(id, record(row)))
      kept.emplace_back(id, row);
    else if (tracks())
      gone_.push_back(id);
  });
  const auto dropped = static_cast<int64_t>(index_.size() - kept.size());
  const size_t chunk = size_t{1} << memory_.chunk_shift;
  const size_t capacity = (kept.size() + chunk - 1) / chunk * chunk;
  RowIndex index;
  index.reserve(memory_.limited ? capacity : kept.size());
  RowMemory rows(*pool_, memory_.record_floats, memory_.chunk_shift);
  std::vector<uint64_t> bits(touched_.empty() ? 0 : rows_.size() / 64 + 1);
  for (const auto& [id, old] : kept) {
    const uint32_t row = rows.add();
    if (touched(old)) bits[row / 64] |= uint64_t{1} << (row % 64);
    std::ranges::copy(record(old), rows.row(row));
    index.insert(hash_id(id), row);
  }
  if (memory_.limited)
    memory_.share.give_back(
        static_cast<int64_t>((capacity_ - capacity) * record_bytes() + index_.bytes()) -
        static_cast<int64_t>(index.bytes()));
  capacity_ = memory_.limited ? capacity : 0;
  free_.clear();
  touched_.swap(bits);
  index_ = std::move(index);
  rows_.swap(rows);
  return dropped;
}

int64_t RowShard::drop_on_disk(const Keep& keep) {
  std::vector<uint64_t> ids;
  std::vector<uint32_t> rows;
  index_.for_each([&](uint64_t id, uint32_t row) {
    if (keep(id, record(row))) return;
    ids.push_back(id);
    rows.push_back(row);
  });
  std::vector<float> aligned(static_cast<size_t>(memory_.record_floats));
  memory_.disk->for_each(memory_.place, [&](uint64_t id, const void* bytes, auto) {
    if (!on_disk_only(id)) return;
    std::memcpy(aligned.data(), bytes, record_bytes());
    if (!keep(id, aligned)) ids.push_back(id);
  });
  for (const uint32_t row : rows) set_free(row);
  memory_.disk->erase(memory_.place, ids);
  if (tracks()) gone_.insert(gone_.end(), ids.begin(), ids.end());
  return static_cast<int64_t>(ids.size());
}

}  // namespace fleetx::ps
