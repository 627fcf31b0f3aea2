// Memory for the rows of a sparse table: chunks of a power of two rows, cut from large mappings
// that the kernel may back with huge pages. A row never moves, and is 4 bytes as a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace fleetx::ps {

// Anonymous pages, zero, with huge pages where the kernel has them; or those of a file.
class Mapping {
 public:
  Mapping() = default;
  explicit Mapping(size_t bytes);
  // In a file that is made in this folder, and at once has no name any more. A full disk is
  // kUnsupported.
  Mapping(size_t bytes, const std::string& folder);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0, mapped_ = 0;  // asked for; taken, of addresses
};

// Gives out chunks; shared by the shards of a table. Thread-safe.
class ChunkPool {
 public:
  explicit ChunkPool(size_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}
  float* take();
  void give_back(float* chunk);
  size_t chunk_bytes() const { return chunk_bytes_; }

 private:
  const size_t chunk_bytes_;
  std::mutex mutex_;
  std::vector<Mapping> mappings_;
  size_t left_ = 0;  // chunks of the last mapping that were never given out
  std::vector<float*> free_;
};

// The rows of one shard, numbered from 0.
class RowMemory {
 public:
  RowMemory(ChunkPool& pool, int64_t row_floats, int shift)
      : pool_(&pool), row_floats_(row_floats), shift_(shift), mask_((uint32_t{1} << shift) - 1) {}
  ~RowMemory() { clear(); }
  RowMemory(RowMemory&& other) noexcept = default;
  RowMemory(const RowMemory&) = delete;

  float* row(uint32_t index) const {
    return chunks_[index >> shift_] + static_cast<int64_t>(index & mask_) * row_floats_;
  }
  uint32_t size() const { return size_; }
  size_t row_bytes() const { return static_cast<size_t>(row_floats_) * sizeof(float); }
  uint32_t add();
  void clear();
  void swap(RowMemory& other) noexcept {
    chunks_.swap(other.chunks_);
    std::swap(size_, other.size_);
  }

  // So that a chunk has at most this many bytes, or one row.
  static constexpr size_t kChunkBytes = size_t{256} << 10;
  static int shift_for(int64_t row_floats, size_t chunk_bytes = kChunkBytes);

 private:
  ChunkPool* pool_;
  int64_t row_floats_;
  int shift_;
  uint32_t mask_, size_ = 0;
  std::vector<float*> chunks_;
};

}  // namespace fleetx::ps
