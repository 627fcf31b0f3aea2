// Memory for payloads, reused: a fresh block of some 100 KB costs more page faults than the copy
// into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace fleetx::ps {

// Not initialised. Aligned for ids, floats and vectors of them.
class Payload {
 public:
  Payload() = default;
  explicit Payload(size_t bytes);
  Payload(Payload&& other) noexcept
      : memory_(std::move(other.memory_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Payload& operator=(Payload&& other) noexcept {
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  char* data() { return reinterpret_cast<char*>(memory_.get()); }
  const char* data() const { return reinterpret_cast<const char*>(memory_.get()); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  void resize(size_t bytes);  // forgets the content where it has to grow

  std::string_view text() const { return {data(), size_}; }
  std::span<const uint64_t> ids(size_t count) const {
    return {reinterpret_cast<const uint64_t*>(data()), count};
  }
  float* floats(size_t offset_bytes = 0) { return reinterpret_cast<float*>(data() + offset_bytes); }
  const float* floats(size_t offset_bytes = 0) const {
    return reinterpret_cast<const float*>(data() + offset_bytes);
  }
  void assign(std::string_view text);

 private:
  struct alignas(64) Line {
    char bytes[64];
  };
  std::unique_ptr<Line[]> memory_;
  size_t size_ = 0, capacity_ = 0;
};

class PayloadPool {
 public:
  Payload take(size_t bytes);
  void give_back(Payload payload);

 private:
  std::mutex mutex_;
  std::vector<Payload> free_;
};

}  // namespace fleetx::ps
