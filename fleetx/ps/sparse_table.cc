#include "fleetx/ps/sparse_table.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <thread>
#include <unordered_map>

#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"
#include "fleetx/ps/row_index.h"

namespace fleetx::ps {
namespace {

constexpr size_t kGroup = 32;
constexpr size_t kShards = 16;  // at least; a power of two
constexpr size_t kLine = 64 / sizeof(float);

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

}  // namespace

struct alignas(64) SparseTable::Shard {
  Shard(ChunkPool& pool, int64_t record_floats)
      : rows(pool, record_floats, RowMemory::shift_for(record_floats)) {}

  std::atomic_flag taken;
  RowIndex index;
  RowMemory rows;
  std::unordered_map<uint64_t, int64_t> seen;  // pushes of ids that are not admitted yet
};

// A shard belongs to one thread at a time, for as long as this lives.
class SparseTable::Taken {
 public:
  enum class If { kFree, kAlways };
  explicit Taken(Shard& shard, If when = If::kAlways) : shard_(&shard) {
    while (shard.taken.test_and_set(std::memory_order_acquire)) {
      if (when == If::kFree) {
        shard_ = nullptr;
        return;
      }
      std::this_thread::yield();
    }
  }
  ~Taken() {
    if (shard_ != nullptr) shard_->taken.clear(std::memory_order_release);
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  explicit operator bool() const { return shard_ != nullptr; }

 private:
  Shard* shard_;
};

// Where the ids of a few requests are.
struct SparseTable::Group {
  size_t count = 0;
  uint32_t place[kGroup];  // in the request
  float* record[kGroup];   // null: there is no row
};

SparseTable::SparseTable(const SparseSpec& spec, int threads)
    : spec_(spec),
      hash_(stable_hash(spec.name)),
      threads_(threads),
      dim_(spec.dim),
      first_states_(spec.rule->states()),
      scalars_(spec.rule->scalars()) {
  record_floats_ = dim_ * static_cast<int64_t>(1 + first_states_.size());
  const int shift = RowMemory::shift_for(record_floats_);
  pool_ =
      std::make_unique<ChunkPool>((static_cast<size_t>(record_floats_) * sizeof(float)) << shift);
  const size_t shards = std::max(kShards, std::bit_ceil(4 * static_cast<size_t>(threads)));
  shard_shift_ = 64 - std::countr_zero(shards);
  for (size_t s = 0; s < shards; ++s)
    shards_.push_back(std::make_unique<Shard>(*pool_, record_floats_));
}

SparseTable::~SparseTable() = default;

SparseTable::Shard& SparseTable::shard_of(uint64_t hash) const {
  return *shards_[hash >> shard_shift_];
}

int64_t SparseTable::rows() const {
  int64_t rows = 0;
  for (const auto& shard : shards_) {
    const Taken taken(*shard);
    rows += shard->rows.size();
  }
  return rows;
}

int64_t SparseTable::bytes() const {
  size_t bytes = 0;
  for (const auto& shard : shards_) {
    const Taken taken(*shard);
    bytes += shard->index.bytes() +
             size_t{shard->rows.size()} * static_cast<size_t>(record_floats_) * sizeof(float) +
             shard->seen.size() * 32;
  }
  return static_cast<int64_t>(bytes);
}

bool SparseTable::admits(uint64_t id) const {
  if (spec_.probability >= 1) return true;
  return static_cast<double>(mix(hash_ + 1, id) >> 11) * 0x1p-53 < spec_.probability;
}

uint32_t SparseTable::make(Shard& shard, uint64_t id, uint64_t hash) {
  const uint32_t row = shard.rows.add();
  float* const record = shard.rows.row(row);
  spec_.initializer.fill(hash_, id, {record, static_cast<size_t>(dim_)});
  for (size_t s = 0; s < first_states_.size(); ++s)
    std::fill_n(record + dim_ * static_cast<int64_t>(s + 1), dim_, first_states_[s]);
  shard.index.insert(id, hash, row);
  return row;
}

// find(shard, id, hash) gives the row of an id or kNone; use(group) gets rows that have been
// fetched. The shards of all ids must be taken. `order`: which ids; empty: all.
template <class Find, class Use>
void SparseTable::in_groups(std::span<const uint64_t> ids, std::span<const uint32_t> order,
                            const Find& find, const Use& use) {
  const size_t n = order.empty() ? ids.size() : order.size();
  const auto place = [&](size_t i) { return order.empty() ? static_cast<uint32_t>(i) : order[i]; };
  uint64_t hashes[2][kGroup];
  Group groups[2];
  const auto prefetch = [&](size_t begin, uint64_t* hash) {
    for (size_t i = begin; i < std::min(n, begin + kGroup); ++i) {
      hash[i - begin] = hash_id(ids[place(i)]);
      shard_of(hash[i - begin]).index.prefetch(hash[i - begin]);
    }
  };
  const auto floats = static_cast<size_t>(record_floats_);
  const auto look_up = [&](size_t begin, const uint64_t* hash, Group& group) {
    group.count = std::min(n, begin + kGroup) - begin;
    for (size_t i = 0; i < group.count; ++i) {
      group.place[i] = place(begin + i);
      Shard& shard = shard_of(hash[i]);
      const uint32_t row = find(shard, ids[group.place[i]], hash[i]);
      float* const record = row == RowIndex::kNone ? nullptr : shard.rows.row(row);
      group.record[i] = record;
      if (record == nullptr) continue;
      for (size_t f = 0; f < floats; f += kLine) __builtin_prefetch(record + f, 1);
      __builtin_prefetch(record + floats - 1, 1);  // a row need not begin at a line
    }
  };
  prefetch(0, hashes[0]);
  size_t begin = 0;
  for (int k = 0; begin < n; begin += kGroup, k ^= 1) {
    prefetch(begin + kGroup, hashes[k ^ 1]);
    look_up(begin, hashes[k], groups[k]);
    if (begin > 0) use(groups[k ^ 1]);
  }
  if (n > 0) use(groups[((n + kGroup - 1) / kGroup - 1) % 2]);
}

// body(order) for sets of ids whose shards are taken; together they are all of them.
template <class Body>
void SparseTable::by_shards(std::span<const uint64_t> ids, const Body& body) {
  if (threads_ == 1 || ids.size() <= shards_.size()) {
    for (const auto& shard : shards_)
      while (shard->taken.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    struct Free {
      SparseTable& table;
      ~Free() {
        for (const auto& shard : table.shards_) shard->taken.clear(std::memory_order_release);
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
  std::vector<size_t> todo;
  for (size_t s = 0; s < shards_.size(); ++s)
    if (begin[s + 1] > begin[s]) todo.push_back(s);
  // Those that are free first; who finds all others taken waits for one.
  while (!todo.empty()) {
    const size_t before = todo.size();
    std::erase_if(todo, [&](size_t s) {
      const Taken taken(*shards_[s], Taken::If::kFree);
      if (!taken) return false;
      body(std::span<const uint32_t>(order).subspan(begin[s], begin[s + 1] - begin[s]));
      return true;
    });
    if (todo.size() == before) std::this_thread::yield();
  }
}

void SparseTable::pull(std::span<const uint64_t> ids, float* rows, Absent absent) {
  const bool makes = absent == Absent::kMake && spec_.min_count <= 1;
  by_shards(ids, [&](std::span<const uint32_t> order) {
    in_groups(
        ids, order,
        [&](Shard& shard, uint64_t id, uint64_t hash) {
          const uint32_t row = shard.index.find(id, hash);
          if (row != RowIndex::kNone || !makes || !admits(id)) [[likely]]
            return row;
          return make(shard, id, hash);
        },
        [&](Group& group) {
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
        });
  });
}

void SparseTable::push_rows(std::span<const uint64_t> ids, std::span<const uint32_t> order,
                            const float* gradients, float lr, std::span<const float> scalars) {
  in_groups(
      ids, order,
      [&](Shard& shard, uint64_t id, uint64_t hash) {
        const uint32_t row = shard.index.find(id, hash);
        if (row != RowIndex::kNone) [[likely]]
          return row;
        if (!admits(id)) return RowIndex::kNone;
        if (spec_.min_count > 1) {
          if (++shard.seen[id] < spec_.min_count) return RowIndex::kNone;
          shard.seen.erase(id);
        }
        return make(shard, id, hash);
      },
      [&](Group& group) {
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
      });
}

void SparseTable::push(std::span<const uint64_t> ids, const float* gradients, float lr) {
  const std::vector<float> now = scalars();
  by_shards(ids,
            [&](std::span<const uint32_t> order) { push_rows(ids, order, gradients, lr, now); });
  const std::scoped_lock lock(scalars_mutex_);
  spec_.rule->advance(scalars_);
}

void SparseTable::for_each(
    const std::function<void(uint64_t id, std::span<const float> record)>& visit) {
  for (const auto& shard : shards_) {
    const Taken taken(*shard);
    shard->index.for_each([&](uint64_t id, uint32_t row) {
      visit(id, {shard->rows.row(row), static_cast<size_t>(record_floats_)});
    });
  }
}

void SparseTable::put(uint64_t id, std::span<const float> record) {
  FLEETX_CHECK(static_cast<int64_t>(record.size()) == record_floats_);
  const uint64_t hash = hash_id(id);
  Shard& shard = shard_of(hash);
  const Taken taken(shard);
  uint32_t row = shard.index.find(id, hash);
  if (row == RowIndex::kNone) {
    row = shard.rows.add();
    shard.index.insert(id, hash, row);
  }
  std::copy(record.begin(), record.end(), shard.rows.row(row));
}

int64_t SparseTable::drop(
    const std::function<bool(uint64_t id, std::span<const float> record)>& keep) {
  int64_t dropped = 0;
  const auto floats = static_cast<size_t>(record_floats_);
  for (const auto& shard : shards_) {
    const Taken taken(*shard);
    RowIndex index;
    RowMemory rows(*pool_, record_floats_, RowMemory::shift_for(record_floats_));
    shard->index.for_each([&](uint64_t id, uint32_t row) {
      const float* const record = shard->rows.row(row);
      if (!keep(id, {record, floats})) {
        ++dropped;
        return;
      }
      const uint32_t to = rows.add();
      std::copy_n(record, floats, rows.row(to));
      index.insert(id, hash_id(id), to);
    });
    shard->index = std::move(index);
    shard->rows.swap(rows);
  }
  return dropped;
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
