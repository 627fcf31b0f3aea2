// Lets many threads change tables, and one now and then look at all of them while they stand still.
#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>

namespace fleetx::ps {

class ChangeGate {
 public:
  // As long as the result lives.
  [[nodiscard]] std::shared_lock<std::shared_mutex> change() {
    // Readers are preferred by the system's lock: without this who waits for all might never begin.
    if (waits_) const std::scoped_lock turn(turn_);
    return std::shared_lock(mutex_);
  }
  template <class Look>
  void stand_still(Look&& look) {
    const std::scoped_lock turn(turn_);
    waits_ = true;
    const std::unique_lock lock(mutex_);
    waits_ = false;
    look();
  }

 private:
  std::shared_mutex mutex_;
  std::mutex turn_;
  std::atomic<bool> waits_{false};
};

}  // namespace fleetx::ps
