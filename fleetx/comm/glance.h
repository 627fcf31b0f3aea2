// Waits that a user may end (fleetx/base/interrupt.h).
#pragma once

#include <condition_variable>
#include <mutex>

#include "fleetx/base/interrupt.h"
#include "fleetx/comm/deadline.h"

namespace fleetx::comm {

// How often one who waits looks up.
constexpr Milliseconds kGlance{20};

// Like wait_until; nobody holds the lock while the user is asked.
template <class Predicate>
bool wait_glancing(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                   Deadline end, const Predicate& ready) {
  while (!changed.wait_until(lock, std::min(end, after(kGlance)), ready)) {
    if (Clock::now() >= end) return false;
    lock.unlock();
    try {
      check_interrupt();
    } catch (...) {
      lock.lock();
      throw;
    }
    lock.lock();
  }
  return true;
}

}  // namespace fleetx::comm
