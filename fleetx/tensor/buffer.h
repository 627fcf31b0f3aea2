// Memory for tensors: 64-byte aligned; large blocks are page-aligned and ask the kernel for huge
// pages. A Buffer either owns its memory or is a view that keeps the owner alive.
#pragma once

#include <cstddef>
#include <memory>

namespace fleetx {

class Buffer {
 public:
  Buffer() = default;
  // Zero-filled.
  static Buffer allocate(size_t bytes);
  // A view; `owner` is released with the last copy. A null owner means: the caller guarantees the
  // lifetime.
  static Buffer view(void* data, size_t bytes, std::shared_ptr<void> owner = nullptr);

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // True if no other Buffer refers to this memory.
  bool unique() const { return owner_.use_count() == 1; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  std::shared_ptr<void> owner_;
};

inline constexpr size_t kAlignment = 64;
inline size_t align_up(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace fleetx
