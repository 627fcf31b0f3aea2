// Two ways to add up rows that share an id, both with the same bits for any number of threads:
// MergeRows visits each distinct id of a sparse gradient once, add_rows adds rows into a dense
// table. Neither allocates while it runs.
#pragma once

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/kernel.h"

namespace fleetx::ops {

// For sparse optimizers and norms, where an id may stand several times in kernel::SparseRows:
//
//   merge_(p, p.in("grad").rows, width)                        in the constructor of a kernel
//   merge_.for_each(r, rows, [&](int part, int64_t id, const float* g) { ... });      in its run
class MergeRows {
 public:
  MergeRows(kernel::Prepare& p, int64_t capacity, int64_t width);

  // body(part, id, row) once per distinct id, ids ascending within a part, parts in parallel;
  // part < num_threads(). The row is the sum of all rows of that id, added in the order in which
  // they stand; it is valid during the call only. The body must not throw. ahead(id) comes some
  // rows before body(id), to fetch what lies anywhere in memory.
  template <class Body, class Ahead>
  void for_each(const kernel::Run& r, const kernel::SparseRows& rows, const Body& body,
                const Ahead& ahead) const;
  template <class Body>
  void for_each(const kernel::Run& r, const kernel::SparseRows& rows, const Body& body) const {
    for_each(r, rows, body, [](int64_t) {});
  }

  struct Entry {
    int64_t id, position;
  };
  // The entries of ids[0, count) sorted by id, equal ids in order of position. The result lies in
  // `scratch`, which has room for 2 * count entries.
  static const Entry* sort(const int64_t* ids, int64_t count, Entry* scratch);

 private:
  const float* sum(const kernel::SparseRows& rows, const Entry* begin, const Entry* end,
                   float* buffer) const;

  int64_t width_, buffer_stride_;
  kernel::Slot entries_, buffers_;
};

template <class Body, class Ahead>
void MergeRows::for_each(const kernel::Run& r, const kernel::SparseRows& rows, const Body& body,
                         const Ahead& ahead) const {
  constexpr int64_t kAhead = 16;  // rows
  const int64_t n = *rows.count;
  const Entry* entries = sort(rows.ids, n, r.out<Entry>(entries_));
  float* buffers = r.out<float>(buffers_);
  const int64_t grain = std::max<int64_t>(1, (1 << 12) / std::max<int64_t>(1, width_));
  parallel_parts(n, parts_for(n, grain), [&](int part, int64_t begin, int64_t end) {
    // A part owns the ids whose first entry lies in it.
    while (begin > 0 && begin < end && entries[begin].id == entries[begin - 1].id) ++begin;
    while (begin < end) {
      int64_t next = begin + 1;
      while (next < n && entries[next].id == entries[begin].id) ++next;
      for (int64_t i = begin + kAhead; i < std::min(next + kAhead, n); ++i) {
        __builtin_prefetch(rows.values + entries[i].position * width_);
        ahead(entries[i].id);
      }
      body(part, entries[begin].id,
           sum(rows, entries + begin, entries + next, buffers + part * buffer_stride_));
      begin = next;
    }
  });
}

// body(i) for i in [0, n), in this order for all i of one id, and different ids in parallel: every
// thread walks over all ids and takes those that it owns. A negative id is left out. `work` is the
// number of elements that all bodies touch.
template <class Id, class Body>
void for_each_owned(const Id& id, int64_t n, int64_t work, const Body& body) {
  const int parts = parts_for(work, 1 << 14);
  parallel_parts(parts, parts, [&](int part, int64_t, int64_t) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t own = id(i);
      if (own < 0) continue;
      // Neighbouring ids are often hot together: a multiplicative hash spreads them.
      const uint64_t hash = (static_cast<uint64_t>(own) * 0x9E3779B97F4A7C15u) >> 32;
      if (static_cast<int>((hash * static_cast<uint64_t>(parts)) >> 32) == part) body(i);
    }
  });
}

// table[id(i)] += rows[i] for i in [0, n), in this order; a negative id is left out.
template <class T, class Id>
void add_rows(const Id& id, int64_t n, int64_t width, const T* rows, T* table) {
  for_each_owned(id, n, n * width, [=](int64_t i) {
    const T* from = rows + i * width;
    T* to = table + id(i) * width;
    vectorized([=] {
      for (int64_t j = 0; j < width; ++j) to[j] += from[j];
    });
  });
}

}  // namespace fleetx::ops
