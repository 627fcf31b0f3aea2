#include "fleetx/base/contention.h"

#include <gtest/gtest.h>

namespace fleetx::team {
namespace {

using namespace std::chrono_literals;
using Duration = Contention::Clock::duration;
using Time = Contention::Clock::time_point;

// Regions of two parts, one after the other from `now` on, until the leader is alone or the time is
// up. It computes for `own` in each, which lasts 1 ms.
Time run(Contention& c, Time now, Time end, Duration own) {
  while (now < end && !c.is_alone(now)) {
    now += 1ms;
    c.add(2, 1, own, 1ms, now);
  }
  return now;
}

TEST(Contention, HelpersThatHelpAreKept) {
  for (const Duration own : {1000us, 700us, 500us /* one of three items */}) {
    Contention c;
    EXPECT_EQ(run(c, Time(), Time() + 1s, own), Time() + 1s);
  }
}

TEST(Contention, PartsThatTheLeaderTookOverAreNoLoss) {
  Contention c;
  for (int i = 0; i < 100; ++i) c.add(2, 2, 1ms, 1ms, Time() + 1ms);
  EXPECT_FALSE(c.is_alone(Time() + 1ms));
}

TEST(Contention, HelpersThatHoldUpRestForLongerAndLonger) {
  Contention c;
  Time now = run(c, Time(), Time() + 1s, 100us);
  EXPECT_EQ(now, Time() + 15ms);
  for (const auto expected : {30ms, 60ms, 120ms, 240ms, 480ms, 800ms, 800ms}) {
    Time rested = now;
    while (c.is_alone(rested)) rested += 1ms;
    EXPECT_EQ(rested - now, expected);
    now = run(c, rested, rested + 1s, 100us);
    EXPECT_EQ(now, rested + 15ms);
  }
}

TEST(Contention, OneStallInAWindowThatHelpersShortenIsNone) {
  Contention c;
  for (int round = 0; round < 50; ++round) {
    c.add(2, 1, 12ms, 12ms, Time() + 1ms);
    c.add(2, 1, 0ms, 3ms, Time() + 2ms);  // a time slice
    EXPECT_FALSE(c.is_alone(Time() + 3ms));
  }
}

TEST(Contention, AfterAWindowThatHelpsTheRestIsShortAgain) {
  Contention c;
  Time now = Time();
  for (int i = 0; i < 6; ++i) c.add(2, 1, 0ms, 15ms, now);
  EXPECT_TRUE(c.is_alone(now + 799ms));
  now += 1s;
  c.add(2, 1, 15ms, 15ms, now);
  c.add(2, 1, 0ms, 15ms, now);
  EXPECT_TRUE(c.is_alone(now + 29ms));
  EXPECT_FALSE(c.is_alone(now + 30ms));
}

}  // namespace
}  // namespace fleetx::team
