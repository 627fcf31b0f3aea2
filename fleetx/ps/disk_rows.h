// Rows that the tables of a server have put aside on disk: by place (table and shard) and id, a
// record of floats. It is memory of another kind and not a store: what was there when the server
// starts is removed, nothing is synced, and a server that dies goes on from a snapshot or a copy.
// The code is in a library of its own (disk_library/), which is opened where a server asks for a
// disk: others do without RocksDB. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace fleetx::ps {

class DiskRows {
 public:
  struct Place {
    uint32_t table = 0, shard = 0;
  };
  virtual ~DiskRows() = default;

  // found(i, record) for those of the ids that are there; the record need not be aligned.
  using Found = std::function<void(size_t i, const void* record)>;
  virtual void read(Place place, std::span<const uint64_t> ids, size_t record_bytes,
                    const Found& found) = 0;
  // records[i]: of ids[i]. Each id once.
  virtual void write(Place place, std::span<const uint64_t> ids,
                     std::span<const float* const> records, size_t record_bytes) = 0;
  virtual void erase(Place place, std::span<const uint64_t> ids) = 0;

  // All records of a place as they are when this is made, whatever is written later.
  class View {
   public:
    virtual ~View() = default;
    using Visit = std::function<void(uint64_t id, const void* record)>;
    virtual void for_each(size_t record_bytes, const Visit& visit) = 0;
  };
  virtual std::unique_ptr<View> look(Place place) = 0;
};

struct DiskOptions {
  std::string folder;  // of this server alone; made, and removed at the end
  int64_t memory = 0;  // bytes that it may take for itself: buffers, filters, caches
};
// kUnsupported, naming the folder, where it cannot be written, or this build has no such library.
std::unique_ptr<DiskRows> open_disk_rows(const DiskOptions& options);

}  // namespace fleetx::ps

// In libfleetx_disk.
extern "C" fleetx::ps::DiskRows* fleetx_open_disk_rows(const fleetx::ps::DiskOptions* options);
