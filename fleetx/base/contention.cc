#include "fleetx/base/contention.h"

#include <algorithm>

namespace fleetx::team {
namespace {

using namespace std::chrono_literals;

// Long enough for some time slices of the system.
constexpr Contention::Clock::duration kWindow = 15ms;
// The rest of helpers doubles as long as they do not help: trying them costs 2 % of the time, and
// that a neighbour has ended is noticed within a second.
constexpr Contention::Clock::duration kFirstRest = 30ms, kLongestRest = 800ms;

}  // namespace

void Contention::add(int parts, int ran, Clock::duration own, Clock::duration whole,
                     Clock::time_point now) {
  with_helpers_ += whole;
  // A helper's part may be twice as large as the leader's (two of three items); beyond that it was
  // held up.
  alone_ += own + (parts - ran) * std::min(whole, 2 * own / ran);
  if (with_helpers_ < kWindow) return;
  if (with_helpers_ > alone_) {
    rest_ = std::clamp(2 * rest_, kFirstRest, kLongestRest);
    alone_until_ = now + rest_;
  } else {
    rest_ = {};
  }
  alone_ = with_helpers_ = {};
}

}  // namespace fleetx::team
