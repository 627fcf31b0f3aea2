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
  const Deadline begin = Clock::now(), end = begin + 4ms;
  core.yielded(begin, end);
  EXPECT_TRUE(core.keeps_core(end));
  EXPECT_EQ(core.spin(end, 200us), 50us);
  EXPECT_EQ(core.spin(end, 15us), 15us);
  EXPECT_TRUE(core.keeps_core(end + 99ms));
  EXPECT_FALSE(core.keeps_core(end + 101ms));
}

}  // namespace
}  // namespace fleetx::comm
