// Teams: the threads behind every parallel region. A thread that starts a region leads a team of
// its own, whose helpers it keeps for its next regions; threads that lead do not get in each
// other's way.
//
// A machine may be shared, so nobody waits for long on a core: who waits spins for kSpinMicros and
// then sleeps. And a region does not depend on a helper that the system keeps from running: a part
// that nobody has begun is taken by whoever is free. So what runs a part may differ from region to
// region, but not what the part is.
#pragma once

namespace fleetx::team {

// Longer than the gap between two regions of a step, shorter than what a sleeper's wake-up costs
// twice (about 40 us), and far shorter than a time slice (3 ms).
inline constexpr int kSpinMicros = 30;
inline constexpr int kMost = 1024;  // parts of a region

enum class Runs {
  kAnywhere,    // each part on the next thread that is free
  kEverywhere,  // part i on thread i of the team: to set something up in each
};

// body(context, part) for each part in [0, parts). Must not throw. Inside a region it runs all
// parts on the calling thread. Helpers compute with the caller's floating-point mode.
using Body = void (*)(void* context, int part);
void run(int parts, Body body, void* context, Runs runs = Runs::kAnywhere);

// Where this thread is: its part of the innermost region, {0, 1} outside of regions.
struct Place {
  int part = 0, parts = 1;
  bool parallel = false;  // a region with several parts is around
};
Place place();

// Waits until all parts of the region have come here.
void barrier();

}  // namespace fleetx::team
