#include "fleetx/tensor/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "fleetx/base/error.h"

namespace fleetx {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

std::shared_ptr<void> map_pages(size_t bytes) {
  // Over-allocate to align to a huge page, then unmap the ends.
  const size_t rounded = (bytes + 4095) / 4096 * 4096;
  const size_t mapped = rounded + kHugePage;
  void* raw = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED)
    fail(Error::Kind::kUnsupported, str("cannot allocate ", bytes >> 20, " MiB of memory"));
  const auto address = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t start = (address + kHugePage - 1) / kHugePage * kHugePage;
  if (start > address) munmap(raw, start - address);
  const uintptr_t tail = start + rounded;
  if (address + mapped > tail) munmap(reinterpret_cast<void*>(tail), address + mapped - tail);
  void* data = reinterpret_cast<void*>(start);
  madvise(data, rounded, MADV_HUGEPAGE);  // advice: a kernel without huge pages ignores it
  return {data, [rounded](void* p) { munmap(p, rounded); }};
}

}  // namespace

Buffer Buffer::allocate(size_t bytes) {
  Buffer buffer;
  buffer.bytes_ = bytes;
  if (bytes >= kHugePage) {
    buffer.owner_ = map_pages(bytes);
  } else {
    const size_t rounded = align_up(bytes == 0 ? 1 : bytes);
    void* data = std::aligned_alloc(kAlignment, rounded);
    if (data == nullptr)
      fail(Error::Kind::kUnsupported, str("cannot allocate ", bytes, " bytes of memory"));
    std::memset(data, 0, rounded);
    buffer.owner_ = {data, [](void* p) { std::free(p); }};
  }
  buffer.data_ = buffer.owner_.get();
  return buffer;
}

Buffer Buffer::view(void* data, size_t bytes, std::shared_ptr<void> owner) {
  Buffer buffer;
  buffer.data_ = data;
  buffer.bytes_ = bytes;
  buffer.owner_ = std::move(owner);
  return buffer;
}

}  // namespace fleetx
