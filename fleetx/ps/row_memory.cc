#include "fleetx/ps/row_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "fleetx/base/error.h"
#include "fleetx/base/fd.h"

namespace fleetx::ps {
namespace {

constexpr size_t kChunksOfMapping = 32, kMappingBytes = size_t{8} << 20;
constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

// The kernel aligns whole huge pages only. The last one would have room that nobody uses: there
// are small pages there.
Mapping::Mapping(size_t bytes) : bytes_(bytes), mapped_(bytes) {
  if (bytes >= kHugePage) mapped_ = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  data_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    fail(Error::Kind::kUnsupported,
         str("no memory for a table: ", bytes, " more bytes: ", std::strerror(errno)));
  }
  if (bytes >= kHugePage) madvise(data_, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
}

Mapping::Mapping(size_t bytes, const std::string& folder) : bytes_(bytes), mapped_(bytes) {
  static std::atomic<uint64_t> number{0};  // threads make files in the same folder
  const std::string path = str(folder, "/", getpid(), ".", number++);
  const Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  int error = file ? 0 : errno;
  if (file) {
    unlink(path.c_str());
    error = posix_fallocate(file.get(), 0, static_cast<int64_t>(bytes));
  }
  if (error == 0) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (data_ == MAP_FAILED) {
      data_ = nullptr;
      error = errno;
    }
  }
  if (error != 0)
    fail(Error::Kind::kUnsupported,
         str("rows on disk: ", path, ", ", bytes, " bytes: ", std::strerror(error)));
  madvise(data_, bytes, MADV_RANDOM);
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, mapped_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

float* ChunkPool::take() {
  const std::scoped_lock lock(mutex_);
  if (!free_.empty()) {
    float* const chunk = free_.back();
    free_.pop_back();
    return chunk;
  }
  // Small chunks are those of a table with little memory.
  const size_t per_mapping = chunk_bytes_ * 2 > RowMemory::kChunkBytes
                                 ? std::max<size_t>(1, kMappingBytes / chunk_bytes_)
                                 : kChunksOfMapping;
  if (left_ == 0) {
    mappings_.emplace_back(per_mapping * chunk_bytes_);
    left_ = per_mapping;
  }
  char* const begin = static_cast<char*>(mappings_.back().data());
  return reinterpret_cast<float*>(begin + (per_mapping - left_--) * chunk_bytes_);
}

void ChunkPool::give_back(float* chunk) {
  const std::scoped_lock lock(mutex_);
  madvise(chunk, chunk_bytes_, MADV_DONTNEED);  // whole pages within; the rest stays until reused
  free_.push_back(chunk);
}

uint32_t RowMemory::add() {
  FLEETX_CHECK(size_ < UINT32_MAX - 1, "a shard has at most 2^32 - 2 rows");
  if ((size_ & mask_) == 0) chunks_.push_back(pool_->take());
  return size_++;
}

void RowMemory::clear() {
  for (float* chunk : chunks_) pool_->give_back(chunk);
  chunks_.clear();
  size_ = 0;
}

int RowMemory::shift_for(int64_t row_floats, size_t chunk_bytes) {
  const auto row_bytes = static_cast<size_t>(row_floats) * sizeof(float);
  int shift = 0;
  while ((row_bytes << (shift + 1)) <= chunk_bytes) ++shift;
  return shift;
}

}  // namespace fleetx::ps
