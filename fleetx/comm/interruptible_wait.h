// Blocking waits that check for interrupts (fleetx/base/interrupt.h).
#pragma once

#include <condition_variable>
#include <mutex>

#include "fleetx/base/interrupt.h"
#include "fleetx/comm/deadline.h"

namespace fleetx::comm {

// How often a waiting thread checks.
constexpr Milliseconds kInterruptPeriod{20};

// Like wait_until. The lock is released during the check.
template <class Predicate>
bool wait_interruptible(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                        Deadline end, const Predicate& ready) {
  while (!changed.wait_until(lock, std::min(end, after(kInterruptPeriod)), ready)) {
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
