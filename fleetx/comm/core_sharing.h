// When a thread that waits awake gives up its core. Usually it does so now and then: the rank that
// it waits for may need that core, and gives it back soon. Whoever keeps it for longer is no rank
// that waits, but computes. Then the core is not given up for a while, the longer the more often
// that happens, and the thread sleeps earlier instead, in case it was its peer nevertheless.
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
    if (end - begin > kLongYield) {
      kept_until_ = end + next_;
      next_ = std::min(2 * next_, kLongest);
      short_yields_ = 0;
    } else if (++short_yields_ == kForgotten) {
      next_ = kShortest;
    }
  }

 private:
  static constexpr Time kLongYield{500}, kSpinBesideOthers{50};
  static constexpr Milliseconds kShortest{4}, kLongest{128};
  static constexpr int kForgotten = 1000;  // so many short yields in a row

  Deadline kept_until_{};
  Milliseconds next_ = kShortest;
  int short_yields_ = 0;
};

}  // namespace fleetx::comm
