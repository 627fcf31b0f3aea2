#include "fleetx/comm/core_sharing.h"

#include <gtest/gtest.h>

namespace fleetx::comm {
namespace {

using namespace std::chrono_literals;

// Another rank gives the core back soon, so the next wait gives it up again.
TEST(CoreSharing, RanksTakeTurns) {
  CoreSharing core;
  const Deadline now = Clock::now();
  core.yielded(now, now + 100us);
  EXPECT_FALSE(core.keeps_core(now + 100us));
  EXPECT_EQ(core.spin(now + 100us, 200us), 200us);
}

// Who computes keeps a core for milliseconds: a short call would wait for that every time.
TEST(CoreSharing, WhoComputesIsNotGivenTheCoreAgain) {
  CoreSharing core;
  Deadline now = Clock::now();
  for (const Milliseconds kept : {4ms, 8ms, 16ms, 32ms, 64ms, 128ms, 128ms}) {
    const Deadline end = now + 4ms;
    core.yielded(now, end);
    EXPECT_TRUE(core.keeps_core(end));
    EXPECT_EQ(core.spin(end, 200us), 50us);
    EXPECT_EQ(core.spin(end, 15us), 15us);
    now = end + kept;
    EXPECT_TRUE(core.keeps_core(now - 1us));
    EXPECT_FALSE(core.keeps_core(now));
  }
}

// Once, as while ranks start, is soon forgotten.
TEST(CoreSharing, TurnsThatAreShortAgainCount) {
  CoreSharing core;
  const Deadline now = Clock::now();
  for (int i = 0; i < 4; ++i) core.yielded(now, now + 4ms);
  for (int i = 0; i < 1000; ++i) core.yielded(now, now + 1us);
  core.yielded(now, now + 1ms);
  EXPECT_TRUE(core.keeps_core(now + 4ms));
  EXPECT_FALSE(core.keeps_core(now + 5ms));
}

}  // namespace
}  // namespace fleetx::comm
