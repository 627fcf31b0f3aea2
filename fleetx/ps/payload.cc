#include "fleetx/ps/payload.h"

#include <algorithm>

namespace fleetx::ps {
namespace {

// More than this is given back to the system.
constexpr size_t kMostFree = 16;

}  // namespace

Payload::Payload(size_t bytes) { resize(bytes); }

void Payload::resize(size_t bytes) {
  if (bytes > capacity_) {
    const size_t lines = (bytes + sizeof(Line) - 1) / sizeof(Line);
    memory_.reset();
    memory_ = std::make_unique_for_overwrite<Line[]>(lines);
    capacity_ = lines * sizeof(Line);
  }
  size_ = bytes;
}

void Payload::assign(std::string_view text) {
  resize(text.size());
  std::ranges::copy(text, data());
}

Payload PayloadPool::take(size_t bytes) {
  {
    const std::scoped_lock lock(mutex_);
    const auto fits = std::find_if(free_.begin(), free_.end(),
                                   [&](const Payload& p) { return p.capacity() >= bytes; });
    if (fits != free_.end()) {
      Payload payload = std::move(*fits);
      free_.erase(fits);
      payload.resize(bytes);
      return payload;
    }
  }
  return Payload(bytes);
}

void PayloadPool::give_back(Payload payload) {
  if (payload.capacity() == 0) return;
  const std::scoped_lock lock(mutex_);
  free_.push_back(std::move(payload));
  if (free_.size() > kMostFree) free_.erase(free_.begin());
}

}  // namespace fleetx::ps
