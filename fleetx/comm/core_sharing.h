// When a thread that waits awake gives up its core. Usually it does so now and then: the rank that
// it waits for may need that core, and gives it back soon. Whoever keeps it for longer is no rank
// that waits, but computes, and would keep it the next time as well: then the core is not given up
// for a while, and the thread sleeps earlier instead, in case it was its peer nevertheless.
#pragma once

#include "fleetx/comm/deadline.h"

namespace fleetx::comm {

class CoreSharing {
 public:
  using Time = std::chrono::microseconds;

  bool keeps_core(Deadline now) const { return now < kept_until_; }
  // How long to wait awake, where it would be `most` otherwise.
  Time spin(Deadline now, Time most) const {
    return keeps_core(now) ? std::min(most, kSpinBesideOthers) : most;
  }
  // The core was given up from `begin` to `end`.
  void yielded(Deadline begin, Deadline end) {
    if (end - begin > kLongYield) kept_until_ = end + kBesideOthers;
  }

 private:
  static constexpr Time kLongYield{500}, kSpinBesideOthers{50};
  static constexpr Milliseconds kBesideOthers{100};

  Deadline kept_until_{};
};

}  // namespace fleetx::comm
