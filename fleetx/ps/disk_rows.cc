#include "fleetx/ps/disk_rows.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <vector>

#include "fleetx/base/error.h"
#include "fleetx/ps/row_index.h"

namespace fleetx::ps {

namespace fs = std::filesystem;

namespace {

constexpr size_t kGroup = 32;                     // ids whose memory is fetched together
constexpr size_t kFirstBytes = size_t{64} << 10;  // of the slots of a place
constexpr size_t kPage = 4096;
constexpr size_t kMostBytes = size_t{64} << 20;  // of disk that is asked for at once

// Before the record.
struct SlotHeader {
  uint64_t id;
  DiskRows::Mark mark;
  uint32_t used;  // 0: the slot is free
};

[[noreturn]] void fail_at(const std::string& folder, int error) {
  fail(Error::Kind::kUnsupported, str("rows on disk in ", folder, ": ", std::strerror(error)));
}

}  // namespace

// The file of slots, from which places take pieces. Thread-safe.
class DiskRows::Slots {
 public:
  explicit Slots(const std::string& folder) : folder_(folder) {
    const std::string path = folder + "/slots";
    file_ = Fd(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file_) fail_at(folder, errno);
    unlink(path.c_str());
  }

  // A piece of the file, mapped. It has no room on the disk yet.
  struct Piece {
    char* data = nullptr;
    size_t bytes = 0, filled = 0;
    int64_t offset = 0;
  };
  Piece take(size_t bytes) {
    Piece piece{.bytes = (bytes + kPage - 1) / kPage * kPage};
    {
      const std::scoped_lock lock(mutex_);
      piece.offset = end_;
      if (ftruncate(file_.get(), end_ + static_cast<int64_t>(piece.bytes)) != 0)
        fail_at(folder_, errno);
      end_ += static_cast<int64_t>(piece.bytes);
    }
    void* const data =
        mmap(nullptr, piece.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), piece.offset);
    if (data == MAP_FAILED) fail_at(folder_, errno);
    madvise(data, piece.bytes, MADV_RANDOM);
    piece.data = static_cast<char*>(data);
    return piece;
  }

  // Before the first `bytes` of a piece are written: a write to a full disk would end the process.
  void fill(Piece& piece, size_t bytes) {
    if (bytes <= piece.filled) return;
    const size_t more =
        std::min(piece.bytes - piece.filled,
                 std::max(bytes - piece.filled, std::clamp(piece.bytes / 8, kPage, kMostBytes)));
    const int error = posix_fallocate(
        file_.get(), piece.offset + static_cast<int64_t>(piece.filled), static_cast<int64_t>(more));
    if (error != 0) fail_at(folder_, error);
    piece.filled += more;
  }

 private:
  const std::string folder_;
  Fd file_;
  std::mutex mutex_;
  int64_t end_ = 0;
};

// The rows of one place.
class DiskRows::Shelf {
 public:
  Shelf(Slots& slots, const std::string& folder, size_t record_bytes)
      : folder_(folder),
        record_bytes_(record_bytes),
        slot_bytes_((sizeof(SlotHeader) + record_bytes + 7) / 8 * 8),
        first_slots_(std::bit_floor(std::max<size_t>(kFirstBytes / slot_bytes_, 1))),
        slots_(slots),
        index_(folder) {}
  ~Shelf() {
    for (const Slots::Piece& piece : pieces_) munmap(piece.data, piece.bytes);
  }

  void check_size(size_t bytes) const {
    check_file(bytes == record_bytes_, "rows on disk in ", folder_, ": a record of ", record_bytes_,
               " bytes, not ", bytes);
  }

  // use(i, slot) for each id, kNone where it has none; what it will touch is being fetched.
  template <class Use>
  void for_ids(std::span<const uint64_t> ids, const Use& use) {
    uint64_t hashes[kGroup];
    uint32_t slots[kGroup];
    for (size_t begin = 0; begin < ids.size(); begin += kGroup) {
      const size_t n = std::min(kGroup, ids.size() - begin);
      for (size_t i = 0; i < n; ++i) {
        hashes[i] = hash_id(ids[begin + i]);
        index_.prefetch(hashes[i]);
      }
      for (size_t i = 0; i < n; ++i) {
        slots[i] = index_.find(hashes[i]);
        if (slots[i] == RowIndex::kNone) continue;
        const char* const slot = at(slots[i]);
        for (size_t line = 0; line < slot_bytes_; line += 64) __builtin_prefetch(slot + line);
      }
      for (size_t i = 0; i < n; ++i) use(begin + i, slots[i]);
    }
  }

  void read(std::span<const uint64_t> ids, const Found& found) {
    for_ids(ids, [&](size_t i, uint32_t slot) {
      if (slot == RowIndex::kNone) return;
      const char* const data = at(slot);
      found(i, data + sizeof(SlotHeader), header_of(data).mark);
    });
  }

  void write(std::span<const uint64_t> ids, std::span<const float* const> records,
             std::span<const Mark> marks) {
    for_ids(ids, [&](size_t i, uint32_t slot) {
      const bool is_new = slot == RowIndex::kNone;
      if (is_new) slot = take();
      char* const data = at(slot);
      const SlotHeader header{.id = ids[i], .mark = marks[i], .used = 1};
      std::memcpy(data, &header, sizeof header);
      std::memcpy(data + sizeof header, records[i], record_bytes_);
      if (is_new) index_.insert(hash_id(ids[i]), slot);
    });
  }

  void erase(std::span<const uint64_t> ids) {
    for (const uint64_t id : ids) {
      const uint32_t slot = index_.find(hash_id(id));
      if (slot == RowIndex::kNone) continue;
      index_.erase(hash_id(id));
      const SlotHeader header{};
      std::memcpy(at(slot), &header, sizeof header);
      free_.push_back(slot);
    }
  }

  // In the order of the file.
  void for_each(const Visit& visit) {
    for (const Slots::Piece& piece : pieces_) madvise(piece.data, piece.bytes, MADV_SEQUENTIAL);
    for (uint32_t slot = 0; slot < used_; ++slot) {
      const char* const data = at(slot);
      const SlotHeader header = header_of(data);
      if (header.used != 0) visit(header.id, data + sizeof header, header.mark);
    }
    for (const Slots::Piece& piece : pieces_) madvise(piece.data, piece.bytes, MADV_RANDOM);
  }

 private:
  static SlotHeader header_of(const char* slot) {
    SlotHeader header;
    std::memcpy(&header, slot, sizeof header);
    return header;
  }

  // Pieces have 1, 1, 2, 4, 8, ... times the slots of the first one: the number of mappings stays
  // small, whatever the place has.
  struct Where {
    size_t piece, slot;
  };
  Where where(uint32_t slot) const {
    const size_t piece = std::bit_width(slot / first_slots_);
    return {piece, piece == 0 ? slot : slot - (first_slots_ << (piece - 1))};
  }
  char* at(uint32_t slot) const {
    const Where w = where(slot);
    return pieces_[w.piece].data + w.slot * slot_bytes_;
  }

  uint32_t take() {
    if (!free_.empty()) {
      const uint32_t slot = free_.back();
      free_.pop_back();
      return slot;
    }
    FLEETX_CHECK(used_ < RowIndex::kNone, "a place on disk is full");
    const Where w = where(used_);
    if (w.piece == pieces_.size())
      pieces_.push_back(
          slots_.take((w.piece == 0 ? first_slots_ : first_slots_ << (w.piece - 1)) * slot_bytes_));
    slots_.fill(pieces_[w.piece], (w.slot + 1) * slot_bytes_);
    if (index_.size() >= index_.capacity()) index_.reserve(2 * index_.size());
    return used_++;
  }

  const std::string folder_;
  const size_t record_bytes_, slot_bytes_, first_slots_;
  Slots& slots_;
  RowIndex index_;
  std::vector<Slots::Piece> pieces_;
  std::vector<uint32_t> free_;
  uint32_t used_ = 0;  // slots from 0 on that have been taken once
};

DiskRows::DiskRows(std::string folder) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) fail_at(folder_, error.value());
  lock_ = Fd(open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_) fail_at(folder_, errno);
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    fail(Error::Kind::kUnsupported,
         str("rows on disk in ", folder_, ": another process has the lock; give each server a ",
             "folder of its own (--server_disk)"));
  slots_ = std::make_unique<Slots>(folder_);
}

DiskRows::~DiskRows() {
  shelves_.clear();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

DiskRows::Shelf* DiskRows::find(Place place) {
  const std::scoped_lock lock(mutex_);
  const auto it = shelves_.find(place);
  return it == shelves_.end() ? nullptr : it->second.get();
}

DiskRows::Shelf& DiskRows::at(Place place, size_t record_bytes) {
  const std::scoped_lock lock(mutex_);
  auto& shelf = shelves_[place];
  if (!shelf) shelf = std::make_unique<Shelf>(*slots_, folder_, record_bytes);
  shelf->check_size(record_bytes);
  return *shelf;
}

void DiskRows::read(Place place, std::span<const uint64_t> ids, size_t record_bytes,
                    const Found& found) {
  Shelf* const shelf = find(place);
  if (shelf == nullptr) return;
  shelf->check_size(record_bytes);
  shelf->read(ids, found);
}

void DiskRows::write(Place place, std::span<const uint64_t> ids,
                     std::span<const float* const> records, std::span<const Mark> marks,
                     size_t record_bytes) {
  if (!ids.empty()) at(place, record_bytes).write(ids, records, marks);
}

void DiskRows::erase(Place place, std::span<const uint64_t> ids) {
  if (Shelf* const shelf = find(place)) shelf->erase(ids);
}

void DiskRows::for_each(Place place, const Visit& visit) {
  if (Shelf* const shelf = find(place)) shelf->for_each(visit);
}

}  // namespace fleetx::ps
