#include "fleetx/ps/sparse_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <thread>

#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"

namespace fleetx::ps {
namespace {

// Ids go through a request in groups, so many groups after their buckets were asked for: as many as
// memory needs to answer, and few in a group, so that it always has something to do.
constexpr size_t kGroup = 8, kLookUp = 3, kLookAgain = 4, kUse = 6;
constexpr size_t kRing = 8;      // groups under way: a power of two
constexpr size_t kPiece = 1024;  // of a request, where rows may be on disk
constexpr size_t kShards = 16;   // at least; a power of two

template <int64_t kDim>
void copy_fixed(const float* const* from, float* const* to, size_t n) {
  for (size_t i = 0; i < n; ++i) std::memcpy(to[i], from[i], kDim * sizeof(float));
}

// Known lengths become a few moves instead of a call.
void copy_rows(const float* const* from, float* const* to, size_t n, int64_t dim) {
  switch (dim) {
    case 1: return copy_fixed<1>(from, to, n);
    case 4: return copy_fixed<4>(from, to, n);
    case 8: return copy_fixed<8>(from, to, n);
    case 9: return copy_fixed<9>(from, to, n);
    case 10: return copy_fixed<10>(from, to, n);
    case 16: return copy_fixed<16>(from, to, n);
    case 32: return copy_fixed<32>(from, to, n);
    case 64: return copy_fixed<64>(from, to, n);
    default:
      for (size_t i = 0; i < n; ++i)
        std::memcpy(to[i], from[i], static_cast<size_t>(dim) * sizeof(float));
  }
}

// A row need not begin at a line.
inline void prefetch(const float* row, size_t floats) {
  constexpr uintptr_t kLine = 64;
  const auto begin = reinterpret_cast<uintptr_t>(row), end = begin + floats * sizeof(float);
  for (uintptr_t line = begin & ~(kLine - 1); line < end; line += kLine)
    prefetch_line(reinterpret_cast<const void*>(line));
}

}  // namespace

// Where a few ids of a request are.
struct SparseTable::Group {
  size_t count = 0;
  uint32_t place[kGroup];  // in the request
  uint64_t hash[kGroup];
  float* record[kGroup];  // null: there is no row
  size_t late_count = 0;
  uint32_t late[kGroup];  // those that are not in their own bucket of the index
};

SparseTable::SparseTable(const SparseSpec& spec, int threads, const TableMemory& memory)
    : spec_(spec),
      memory_(memory),
      hash_(stable_hash(spec.name)),
      threads_(threads),
      dim_(spec.dim),
      first_states_(spec.rule->states()),
      scalars_(spec.rule->scalars()),
      rule_scalars_(scalars_.size()) {
  use_at_ = dim_ * static_cast<int64_t>(1 + first_states_.size());
  record_floats_ = use_at_ + (spec_.life ? kUseFloats : 0);
  if (spec_.life) scalars_.push_back(0);
  const size_t shards = std::max(kShards, std::bit_ceil(4 * static_cast<size_t>(threads)));
  shard_shift_ = 64 - std::countr_zero(shards);
  size_t chunk_bytes = RowMemory::kChunkBytes;
  int64_t floor = 0;
  if (limited()) {
    // With a disk half of the memory is dealt out, so that a table that comes late has some; the
    // chunks are so small that every shard can have several.
    const int64_t part = (memory_.budget->bytes() - memory_.budget->used()) / 2 /
                         static_cast<int64_t>(shards * memory_.tables);
    if (memory_.disk != nullptr) floor = part;
    chunk_bytes = std::clamp<size_t>(static_cast<size_t>(part) / 4, 4096, chunk_bytes);
  }
  const int shift = RowMemory::shift_for(record_floats_, chunk_bytes);
  pool_ =
      std::make_unique<ChunkPool>((static_cast<size_t>(record_floats_) * sizeof(float)) << shift);
  if (memory_.disk != nullptr) {
    const auto least =
        static_cast<int64_t>(2 * (pool_->chunk_bytes() + RowIndex::bytes_for(size_t{1} << shift) +
                                  (size_t{16} << shift)));
    check_arg(floor >= least, "table '", spec.name, "': a memory budget of ",
              memory_.budget->bytes(), " bytes for ", memory_.tables,
              " tables is too small; it needs at least ",
              memory_.budget->bytes() / std::max<int64_t>(1, floor) * least);
  }
  for (uint32_t s = 0; s < shards; ++s)
    shards_.push_back(std::make_unique<Shard>(
        *pool_, ShardMemory{.record_floats = record_floats_,
                            .chunk_shift = shift,
                            .share = limited() ? MemoryBudget::Share(*memory_.budget, floor)
                                               : MemoryBudget::Share(),
                            .limited = limited(),
                            .disk = memory_.disk,
                            .place = {2 * memory_.table, s},
                            .seen = {2 * memory_.table + 1, s}}));
}

SparseTable::~SparseTable() = default;

template <class Of>
int64_t SparseTable::sum(const Of& of) const {
  int64_t all = 0;
  for (const auto& shard : shards_) {
    const Taken taken(*shard);
    all += of(*shard);
  }
  return all;
}

int64_t SparseTable::rows() const {
  return sum([](const Shard& s) { return s.size(); });
}

int64_t SparseTable::resident() const {
  return sum([](const Shard& s) { return s.resident(); });
}

int64_t SparseTable::bytes() const {
  return sum([](const Shard& s) { return s.bytes(); });
}

bool SparseTable::admits(uint64_t id) const {
  if (spec_.probability >= 1) return true;
  return static_cast<double>(mix(hash_ + 1, id) >> 11) * 0x1p-53 < spec_.probability;
}

// A push of an id that has no row: whether it is the one that makes it.
bool SparseTable::counts(Shard& shard, uint64_t id) {
  if (spec_.min_count <= 1) return true;
  if (shard.count_seen(id) < spec_.min_count) return false;
  shard.forget_seen(id);
  return true;
}

uint32_t SparseTable::make(Shard& shard, uint64_t id, uint64_t hash) {
  const uint32_t row = shard.add(id, hash);
  float* const record = shard.row(row);
  spec_.initializer.fill(hash_, id, {record, static_cast<size_t>(dim_)});
  for (size_t s = 0; s < first_states_.size(); ++s)
    std::fill_n(record + dim_ * static_cast<int64_t>(s + 1), dim_, first_states_[s]);
  if (spec_.life) set_use(record, {.day = day()});
  shard.note_change(row);
  return row;
}

void SparseTable::refuse() const {
  fail(Error::Kind::kUnsupported,
       str("table '", spec_.name, "': no memory for another row of ",
           record_floats_ * static_cast<int64_t>(sizeof(float)),
           " bytes: the tables of this server have ", memory_.budget->used(), " of ",
           memory_.budget->bytes(),
           " bytes (--server_memory); give more memory or more servers, a disk for rows that are "
           "used little (--server_disk), drop rows (fleet.shrink), or admit fewer "
           "(CountFilterEntry)"));
}

// makes(shard, id): whether an id that has no row gets one now; use(group) gets rows that have been
// fetched. The shards of all ids must be taken. `order`: which ids; empty: all.
//
// Groups are under way one behind the other: of one the index's buckets are being fetched, in
// another ids are looked up and rows are being fetched, in a third those ids that are not in their
// own buckets are looked up again, and the rows of the last are used.
template <class Makes, class Use>
void SparseTable::in_groups(std::span<const uint64_t> ids, std::span<const uint32_t> order,
                            Access access, const Makes& makes, const Use& use) {
  const bool notes = access == Access::kChange && tracks_;
  const size_t n = order.empty() ? ids.size() : order.size();
  const size_t floats = touched_floats(access);
  Group groups[kRing];
  const auto fetch = [&](Group& group, size_t begin) {
    group.count = std::min(kGroup, n - begin);
    group.late_count = 0;
    for (size_t i = 0; i < group.count; ++i) {
      const uint32_t place = order.empty() ? static_cast<uint32_t>(begin + i) : order[begin + i];
      group.place[i] = place;
      group.hash[i] = hash_id(ids[place]);
      shard_of(group.hash[i]).prefetch(group.hash[i]);
    }
  };
  const auto settle = [&](Shard& shard, Group& group, size_t i, uint32_t row) {
    if (row == RowIndex::kNone) [[unlikely]] {
      const uint64_t id = ids[group.place[i]];
      if (makes(shard, id)) row = make(shard, id, group.hash[i]);
    }
    if (notes && row != RowIndex::kNone) [[unlikely]]
      shard.note_change(row);
    group.record[i] = row == RowIndex::kNone ? nullptr : shard.row(row);
    if (group.record[i] != nullptr) prefetch(group.record[i], floats);
  };
  const auto look_up = [&](Group& group) {
    for (size_t i = 0; i < group.count; ++i) {
      Shard& shard = shard_of(group.hash[i]);
      const uint32_t row = shard.find_at_home(group.hash[i]);
      if (row == RowIndex::kElsewhere)
        group.late[group.late_count++] = static_cast<uint32_t>(i);
      else
        settle(shard, group, i, row);
    }
  };
  const auto look_again = [&](Group& group) {
    for (size_t l = 0; l < group.late_count; ++l) {
      const uint32_t i = group.late[l];
      Shard& shard = shard_of(group.hash[i]);
      settle(shard, group, i, shard.find(group.hash[i]));
    }
  };
  const size_t count = (n + kGroup - 1) / kGroup;
  const auto is = [&](size_t k, size_t stage) { return k >= stage && k - stage < count; };
  for (size_t k = 0; k < count + kUse; ++k) {
    if (is(k, 0)) fetch(groups[k % kRing], k * kGroup);
    if (is(k, kLookUp)) look_up(groups[(k - kLookUp) % kRing]);
    if (is(k, kLookAgain)) look_again(groups[(k - kLookAgain) % kRing]);
    if (is(k, kUse)) use(groups[(k - kUse) % kRing]);
  }
}

// The same for ids of one shard, which is taken, of a table with a budget. It takes three passes
// over a piece: look up; make and bring in what is not there; use.
template <class Makes, class Use>
void SparseTable::in_pieces(std::span<const uint64_t> ids, std::span<const uint32_t> order,
                            Access access, const Makes& makes, const Use& use) {
  Shard& shard = shard_of(hash_id(ids[order.front()]));
  std::array<uint64_t, kPiece> hashes;
  std::array<uint32_t, kPiece> rows;
  while (!order.empty()) {
    size_t n = std::min(kPiece, order.size());
    // Before rows are looked up: it may put some of them aside.
    if (shard.has_disk()) n = shard.room(n);
    const std::span<const uint32_t> piece = order.first(n);
    order = order.subspan(n);
    std::vector<uint32_t> missing;
    for (size_t i = 0; i < n; ++i) hashes[i] = hash_id(ids[piece[i]]);
    constexpr size_t kAhead = kGroup * kLookUp;
    for (size_t i = 0; i < std::min(n, kAhead); ++i) shard.prefetch(hashes[i]);
    for (size_t i = 0; i < n; ++i) {
      if (i + kAhead < n) shard.prefetch(hashes[i + kAhead]);
      rows[i] = shard.find(hashes[i]);
      if (rows[i] == RowIndex::kNone)
        missing.push_back(static_cast<uint32_t>(i));
      else if (shard.has_disk() && access == Access::kRead)
        shard.note_use(rows[i]);
    }
    if (!missing.empty() && shard.has_disk()) {
      std::vector<uint64_t> wanted;
      for (const uint32_t i : missing) wanted.push_back(ids[piece[i]]);
      shard.bring_in(wanted);
    }
    for (const uint32_t i : missing) {
      const uint64_t id = ids[piece[i]];
      rows[i] = shard.find(hashes[i]);  // it is back, or stands there twice
      if (rows[i] != RowIndex::kNone || !makes(shard, id)) continue;
      if (shard.room(1) == 0) refuse();
      rows[i] = make(shard, id, hashes[i]);
    }
    for (size_t i = 0; i < n; ++i)
      if (shard.notes_changes() && access == Access::kChange && rows[i] != RowIndex::kNone)
        shard.note_change(rows[i]);
    use_rows(shard, piece, {rows.data(), n}, access, use);
  }
}

template <class Use>
void SparseTable::use_rows(Shard& shard, std::span<const uint32_t> piece,
                           std::span<const uint32_t> rows, Access access, const Use& use) {
  const size_t floats = touched_floats(access), count = (rows.size() + kGroup - 1) / kGroup;
  constexpr size_t kBehind = kUse - kLookUp;
  Group groups[kRing];
  for (size_t k = 0; k < count + kBehind; ++k) {
    if (k < count) {
      Group& group = groups[k % kRing];
      const size_t begin = k * kGroup;
      group.count = std::min(kGroup, rows.size() - begin);
      for (size_t i = 0; i < group.count; ++i) {
        const uint32_t row = rows[begin + i];
        group.place[i] = piece[begin + i];
        group.record[i] = row == RowIndex::kNone ? nullptr : shard.row(row);
        if (group.record[i] != nullptr) prefetch(group.record[i], floats);
      }
    }
    if (k >= kBehind) use(groups[(k - kBehind) % kRing]);
  }
}

// body(order) for sets of ids whose shards are taken; together they are all of them. With a budget
// each set is of one shard.
template <class Body>
void SparseTable::by_shards(std::span<const uint64_t> ids, const Body& body) {
  if (!limited() && (threads_ == 1 || ids.size() <= shards_.size())) {
    for (const auto& shard : shards_) shard->take();
    struct Free {
      SparseTable& table;
      ~Free() {
        for (const auto& shard : table.shards_) shard->release();
      }
    } const free{*this};
    body(std::span<const uint32_t>{});
    return;
  }
  // A counting sort by shard.
  std::vector<uint32_t> begin(shards_.size() + 1), order(ids.size());
  for (const uint64_t id : ids) ++begin[(hash_id(id) >> shard_shift_) + 1];
  for (size_t s = 1; s < begin.size(); ++s) begin[s] += begin[s - 1];
  std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
  for (size_t i = 0; i < ids.size(); ++i)
    order[next[hash_id(ids[i]) >> shard_shift_]++] = static_cast<uint32_t>(i);
  std::vector<size_t> left;
  for (size_t s = 0; s < shards_.size(); ++s)
    if (begin[s + 1] > begin[s]) left.push_back(s);
  // Those that are free first; who finds all others taken waits for one.
  while (!left.empty()) {
    const size_t before = left.size();
    std::erase_if(left, [&](size_t s) {
      const Taken taken(*shards_[s], Shard::If::kFree);
      if (!taken) return false;
      body(std::span<const uint32_t>(order).subspan(begin[s], begin[s + 1] - begin[s]));
      return true;
    });
    if (left.size() == before) std::this_thread::yield();
  }
}

void SparseTable::pull(std::span<const uint64_t> ids, float* rows, Absent absent) {
  const bool may_make = absent == Absent::kMake && spec_.min_count <= 1;
  const auto makes = [&](Shard&, uint64_t id) { return may_make && admits(id); };
  const auto use = [&](Group& group) {
    float* to[kGroup];
    size_t found = 0;
    for (size_t i = 0; i < group.count; ++i) {
      float* const target = rows + int64_t{group.place[i]} * dim_;
      if (group.record[i] == nullptr) [[unlikely]] {
        std::fill_n(target, dim_, 0.0f);
        continue;
      }
      group.record[found] = group.record[i];
      to[found++] = target;
    }
    copy_rows(group.record, to, found, dim_);
  };
  by_shards(ids, [&](std::span<const uint32_t> order) {
    if (limited())
      in_pieces(ids, order, Access::kRead, makes, use);
    else
      in_groups(ids, order, Access::kRead, makes, use);
  });
}

void SparseTable::push_rows(std::span<const uint64_t> ids, std::span<const uint32_t> order,
                            const float* gradients, float lr, std::span<const float> scalars) {
  const auto makes = [&](Shard& shard, uint64_t id) { return admits(id) && counts(shard, id); };
  const auto use = [&](Group& group) {
    const float* gradient[kGroup];
    size_t found = 0;
    for (size_t i = 0; i < group.count; ++i) {
      if (group.record[i] == nullptr) continue;
      group.record[found] = group.record[i];
      gradient[found++] = gradients + int64_t{group.place[i]} * dim_;
    }
    spec_.rule->update({.width = dim_,
                        .lr = lr,
                        .scalars = scalars,
                        .records = {group.record, found},
                        .gradients = {gradient, found}});
  };
  if (limited())
    in_pieces(ids, order, Access::kChange, makes, use);
  else
    in_groups(ids, order, Access::kChange, makes, use);
}

// Without a disk: that a push can make its rows, before it changes any.
void SparseTable::check_room(std::span<const uint64_t> ids) {
  by_shards(ids, [&](std::span<const uint32_t> order) {
    Shard& shard = shard_of(hash_id(ids[order.front()]));
    size_t rows = 0, counted = 0;
    for (const uint32_t i : order) {
      const uint64_t id = ids[i];
      if (shard.find(hash_id(id)) != RowIndex::kNone || !admits(id)) continue;
      if (spec_.min_count <= 1 || shard.seen(id) + 1 >= spec_.min_count)
        ++rows;
      else
        ++counted;
    }
    if (shard.room(rows) < rows || !shard.seen_room(counted)) refuse();
  });
}

void SparseTable::push(std::span<const uint64_t> ids, const float* gradients, float lr) {
  if (limited() && memory_.disk == nullptr) check_room(ids);
  const std::vector<float> now = scalars();
  by_shards(ids, [&](std::span<const uint32_t> order) {
    push_rows(ids, order, gradients, lr, std::span(now).first(rule_scalars_));
  });
  const std::scoped_lock lock(scalars_mutex_);
  spec_.rule->advance(std::span(scalars_).first(rule_scalars_));
}

RowUse SparseTable::use_of(const float* record) const {
  const float* const use = record + use_at_;
  return {.show = use[0], .click = use[1], .day = use[2]};
}

void SparseTable::set_use(float* record, const RowUse& use) const {
  std::ranges::copy(std::array{use.show, use.click, use.day}, record + use_at_);
}

float SparseTable::day() const {
  const std::scoped_lock lock(scalars_mutex_);
  return scalars_.back();
}

void SparseTable::count(std::span<const uint64_t> ids, const float* uses) {
  FLEETX_CHECK(spec_.life.has_value());
  const float today = day();
  const auto makes = [](Shard&, uint64_t) { return false; };
  const auto use = [&](Group& group) {
    for (size_t i = 0; i < group.count; ++i) {
      if (group.record[i] == nullptr) continue;
      RowUse now = use_on(*spec_.life, use_of(group.record[i]), today);
      now.show += uses[2 * group.place[i]];
      now.click += uses[2 * group.place[i] + 1];
      now.day = today;
      set_use(group.record[i], now);
    }
  };
  by_shards(ids, [&](std::span<const uint32_t> order) {
    if (limited())
      in_pieces(ids, order, Access::kChange, makes, use);
    else
      in_groups(ids, order, Access::kChange, makes, use);
  });
}

int64_t SparseTable::shrink(std::optional<float> threshold) {
  if (!spec_.life) {
    const float least = threshold.value_or(0.0f);
    return drop([&](uint64_t, std::span<const float> record) {
      return std::ranges::any_of(record.first(static_cast<size_t>(dim_)),
                                 [&](float x) { return std::abs(x) > least; });
    });
  }
  {
    const std::scoped_lock lock(scalars_mutex_);
    scalars_.back() += 1;
  }
  const float today = day(), least = threshold.value_or(spec_.life->threshold);
  return drop([&](uint64_t, std::span<const float> record) {
    return lives_on(*spec_.life, use_of(record.data()), today, least);
  });
}

void SparseTable::for_each(const RowShard::Visit& visit) {
  for (const auto& shard : shards_) {
    const Taken taken(*shard);
    shard->for_each(visit);
  }
}

void SparseTable::begin_base(const RowShard::Visit& visit) {
  for (const auto& shard : shards_) {
    const Taken taken(*shard);
    shard->for_each(visit);
    shard->begin_base();
    tracks_ = true;  // before anyone else has the shard
  }
}

void SparseTable::for_each_change(const RowShard::Visit& visit, const Gone& gone) {
  for (const auto& shard : shards_) {
    const Taken taken(*shard);
    shard->for_each_change(visit, gone);
  }
}

void SparseTable::for_each_seen(const RowShard::VisitSeen& visit) {
  for (const auto& shard : shards_) {
    const Taken taken(*shard);
    shard->for_each_seen(visit);
  }
}

void SparseTable::put_seen(uint64_t id, int64_t count) {
  Shard& shard = shard_of(hash_id(id));
  const Taken taken(shard);
  if (!shard.has_disk() && !shard.seen_room(1)) refuse();
  shard.put_seen(id, count);
}

void SparseTable::put(uint64_t id, std::span<const float> record) {
  FLEETX_CHECK(static_cast<int64_t>(record.size()) == record_floats_);
  const uint64_t hash = hash_id(id);
  Shard& shard = shard_of(hash);
  const Taken taken(shard);
  if (!shard.put(id, hash, record)) refuse();
}

int64_t SparseTable::drop(const RowShard::Keep& keep) {
  return sum([&](Shard& shard) { return shard.drop(keep); });
}

void SparseTable::clear() {
  for (const auto& shard : shards_) {
    const Taken taken(*shard);
    shard->drop([](auto, auto) { return false; });
    std::vector<uint64_t> seen;
    shard->for_each_seen([&](uint64_t id, int64_t) { seen.push_back(id); });
    for (const uint64_t id : seen) shard->forget_seen(id);
  }
}

std::vector<float> SparseTable::scalars() const {
  const std::scoped_lock lock(scalars_mutex_);
  return scalars_;
}

void SparseTable::set_scalars(std::span<const float> scalars) {
  const std::scoped_lock lock(scalars_mutex_);
  FLEETX_CHECK(scalars.size() == scalars_.size());
  scalars_.assign(scalars.begin(), scalars.end());
}

}  // namespace fleetx::ps
