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

  // A region with helpers: `whole` is how long it took, `own` how long the leader computed its
  // `ran` of the parts.
  void add(int parts, int ran, Clock::duration own, Clock::duration whole, Clock::time_point now);

 private:
  // What the regions in this window took, and would have taken without helpers.
  Clock::duration with_helpers_{}, alone_{};
  Clock::duration rest_{};
  Clock::time_point alone_until_{};
};

}  // namespace fleetx::team
