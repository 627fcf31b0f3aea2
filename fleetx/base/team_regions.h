// How many parallel regions of all teams run now. Where there are none, no thread is inside of one:
// oneDNN asks in every call, and this answers faster than the thread's own variables.
#pragma once

#include <atomic>

namespace fleetx::team {

extern std::atomic<int> regions;

}  // namespace fleetx::team
