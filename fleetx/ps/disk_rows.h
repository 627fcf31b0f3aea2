// Rows that the tables of a server have put aside on disk: by place (table and shard) and id, a
// record of floats. It is memory of another kind and not a store: what was there when the server
// starts is removed, nothing is synced, and a server that dies goes on from a snapshot or a copy.
//
// A file of slots of equal size, and for each place an index from ids to slots, in a file of its
// own. All of them are mapped: what is in use is in the system's cache, and a row comes and goes by
// a copy, without a call of the system. An id keeps its slot, also while its row is in memory.
//
// A place belongs to one thread at a time, who has the shard; different places are independent.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "fleetx/base/fd.h"

namespace fleetx::ps {

class DiskRows {
 public:
  // The folder is of this server alone; it is made, and removed at the end. kUnsupported, naming
  // it, where it cannot be written or another process has it.
  explicit DiskRows(std::string folder);
  ~DiskRows();
  DiskRows(const DiskRows&) = delete;
  DiskRows& operator=(const DiskRows&) = delete;

  struct Place {
    uint32_t table = 0, shard = 0;
    auto operator<=>(const Place&) const = default;
  };
  // What is kept with a record; of no meaning here.
  using Mark = uint32_t;

  // found(i, record, mark) for those of the ids that are there; the record need not be aligned.
  using Found = std::function<void(size_t i, const void* record, Mark mark)>;
  void read(Place place, std::span<const uint64_t> ids, size_t record_bytes, const Found& found);
  // records[i] and marks[i]: of ids[i]. Each id once. A full disk is kUnsupported.
  void write(Place place, std::span<const uint64_t> ids, std::span<const float* const> records,
             std::span<const Mark> marks, size_t record_bytes);
  // Those that are there.
  void erase(Place place, std::span<const uint64_t> ids);
  using Visit = std::function<void(uint64_t id, const void* record, Mark mark)>;
  void for_each(Place place, const Visit& visit);

 private:
  class Slots;
  class Shelf;
  Shelf* find(Place place);
  Shelf& at(Place place, size_t record_bytes);

  const std::string folder_;
  Fd lock_;
  std::unique_ptr<Slots> slots_;
  std::mutex mutex_;
  std::map<Place, std::unique_ptr<Shelf>> shelves_;
};

}  // namespace fleetx::ps
