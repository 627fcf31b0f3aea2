// Whether helpers shorten a team's regions. Where others use the same cores they may not: a helper
// that the system stops within its part holds all up for a time slice, and the parts one after the
// other on one thread take less. The parts stay what they are, so no result depends on it.
#pragma once

#include <chrono>

namespace fleetx::team {

class Contention {
 public:
  using Clock = std::chrono::steady_clock;

  // The leader should run the parts of the next region by itself.
  bool is_alone(Clock::time_point now) const { return now < alone_until_; }

  // A region with helpers took this long, and would have taken that long alone: as often as long as
  // the leader's own parts as there are parts.
  void add(Clock::duration alone, Clock::duration with_helpers, Clock::time_point now);

 private:
  Clock::duration alone_{}, with_helpers_{};  // of the regions in this window
  Clock::duration rest_{};
  Clock::time_point alone_until_{};
};

}  // namespace fleetx::team
