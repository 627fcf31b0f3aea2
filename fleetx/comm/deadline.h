// Every blocking call of comm has a deadline, so that nothing waits for ever.
#pragma once

#include <algorithm>
#include <chrono>

namespace fleetx::comm {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;
using Deadline = Clock::time_point;

inline Deadline after(Milliseconds time) { return Clock::now() + time; }

// The timeout of poll() and epoll_wait(): rounded up, so that they do not return just before the
// deadline.
inline int left_ms(Deadline deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 3'600'000));
}

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace fleetx::comm
