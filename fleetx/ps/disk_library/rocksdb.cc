// Rows on disk by RocksDB. A key is the table, the shard and the id, big-endian: the rows of a
// shard are one range. There is no log of writes (what is not flushed dies with the process, as the
// rest of its memory does), and no compression: floats do not shrink.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <vector>

#include "fleetx/base/error.h"
#include "fleetx/ps/disk_rows.h"

namespace fleetx::ps {
namespace {

namespace fs = std::filesystem;

constexpr size_t kKeyBytes = 12;
using Key = std::array<char, kKeyBytes>;

template <class T>
void put_big_endian(char* to, T value) {
  for (size_t i = 0; i < sizeof value; ++i)
    to[i] = static_cast<char>(value >> (8 * (sizeof value - 1 - i)));
}

Key key_of(DiskRows::Place place, uint64_t id) {
  Key key;
  put_big_endian(key.data(), static_cast<uint16_t>(place.table));
  put_big_endian(key.data() + 2, static_cast<uint16_t>(place.shard));
  put_big_endian(key.data() + 4, id);
  return key;
}

uint64_t id_of(const rocksdb::Slice& key) {
  uint64_t id = 0;
  for (size_t i = 4; i < kKeyBytes; ++i) id = id << 8 | static_cast<unsigned char>(key[i]);
  return id;
}

rocksdb::Slice slice_of(const Key& key) { return {key.data(), key.size()}; }

rocksdb::Options options_for(const DiskOptions& o) {
  const auto memory = static_cast<size_t>(o.memory);
  rocksdb::BlockBasedTableOptions table;
  // Filters say without reading that an id is not in a file; they and the index of the files are
  // kept in the cache, so that they count as its bytes.
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.block_cache = rocksdb::NewLRUCache(memory / 4, 0, false, 0.9);
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.format_version = 5;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = rocksdb::kNoCompression;
  // Rows that come back soon are written over in the buffer; a large one saves most of the work.
  options.write_buffer_size = std::max<size_t>(memory * 3 / 8, size_t{1} << 20);
  options.max_write_buffer_number = 2;
  options.target_file_size_base = std::max<size_t>(options.write_buffer_size, size_t{8} << 20);
  // Files are merged when they have become several: each row is written again less often.
  options.compaction_style = rocksdb::kCompactionStyleUniversal;
  options.max_background_jobs = 2;
  options.allow_mmap_reads = true;  // blocks are used where the system has them, without a copy
  options.info_log_level = rocksdb::ERROR_LEVEL;
  options.keep_log_file_num = 1;
  options.avoid_flush_during_shutdown = true;
  return options;
}

class RocksRows final : public DiskRows {
 public:
  explicit RocksRows(const DiskOptions& o) : folder_(o.folder) {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error)
      fail(Error::Kind::kUnsupported, str("rows on disk in ", folder_, ": ", error.message()));
    const rocksdb::Options options = options_for(o);
    check(rocksdb::DestroyDB(folder_, options));  // not where another process has it
    rocksdb::DB* db = nullptr;
    check(rocksdb::DB::Open(options, folder_, &db));
    db_.reset(db);
    writes_.disableWAL = true;
    reads_.verify_checksums = false;
  }
  ~RocksRows() override {
    db_.reset();
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  void read(Place place, std::span<const uint64_t> ids, size_t record_bytes,
            const Found& found) override {
    // In the order of keys, as RocksDB wants them.
    std::vector<uint32_t> order(ids.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](uint32_t i) { return ids[i]; });
    std::vector<Key> keys;
    std::vector<rocksdb::Slice> slices;
    keys.reserve(ids.size());
    for (const uint32_t i : order) keys.push_back(key_of(place, ids[i]));
    for (const Key& key : keys) slices.push_back(slice_of(key));
    std::vector<rocksdb::PinnableSlice> values(ids.size());
    std::vector<rocksdb::Status> states(ids.size());
    db_->MultiGet(reads_, db_->DefaultColumnFamily(), ids.size(), slices.data(), values.data(),
                  states.data(), true);
    for (size_t k = 0; k < order.size(); ++k) {
      if (states[k].IsNotFound()) continue;
      check(states[k]);
      check_size(values[k].size(), record_bytes);
      found(order[k], values[k].data());
    }
  }

  void write(Place place, std::span<const uint64_t> ids, std::span<const float* const> records,
             size_t record_bytes) override {
    rocksdb::WriteBatch batch(ids.size() * (kKeyBytes + record_bytes + 8) + 16);
    for (size_t i = 0; i < ids.size(); ++i) {
      const Key key = key_of(place, ids[i]);
      check(batch.Put(slice_of(key), {reinterpret_cast<const char*>(records[i]), record_bytes}));
    }
    check(db_->Write(writes_, &batch));
  }

  void erase(Place place, std::span<const uint64_t> ids) override {
    rocksdb::WriteBatch batch;
    for (const uint64_t id : ids) {
      const Key key = key_of(place, id);
      check(batch.Delete(slice_of(key)));
    }
    check(db_->Write(writes_, &batch));
  }

  std::unique_ptr<View> look(Place place) override {
    return std::make_unique<RangeView>(*this, place);
  }

 private:
  class RangeView final : public View {
   public:
    RangeView(RocksRows& rows, Place place)
        : rows_(rows),
          first_(key_of(place, 0)),
          last_(key_of(place, UINT64_MAX)),
          snapshot_(rows.db_->GetSnapshot()) {}
    ~RangeView() override { rows_.db_->ReleaseSnapshot(snapshot_); }

    void for_each(size_t record_bytes, const Visit& visit) override {
      rocksdb::ReadOptions options = rows_.reads_;
      options.snapshot = snapshot_;
      options.fill_cache = false;
      const std::unique_ptr<rocksdb::Iterator> it(rows_.db_->NewIterator(options));
      for (it->Seek(slice_of(first_)); it->Valid() && it->key().compare(slice_of(last_)) <= 0;
           it->Next()) {
        rows_.check_size(it->value().size(), record_bytes);
        visit(id_of(it->key()), it->value().data());
      }
      rows_.check(it->status());
    }

   private:
    RocksRows& rows_;
    const Key first_, last_;
    const rocksdb::Snapshot* const snapshot_;
  };

  void check(const rocksdb::Status& status) const {
    if (status.ok()) return;
    fail(status.IsCorruption() ? Error::Kind::kCorrupt : Error::Kind::kUnsupported,
         str("rows on disk in ", folder_, ": ", status.ToString()));
  }
  void check_size(size_t bytes, size_t expected) const {
    check_file(bytes == expected, "rows on disk in ", folder_, ": a record of ", bytes,
               " bytes, not ", expected);
  }

  const std::string folder_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteOptions writes_;
  rocksdb::ReadOptions reads_;
};

}  // namespace
}  // namespace fleetx::ps

fleetx::ps::DiskRows* fleetx_open_disk_rows(const fleetx::ps::DiskOptions* options) {
  return new fleetx::ps::RocksRows(*options);
}
