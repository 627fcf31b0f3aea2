#include "fleetx/base/contention.h"

#include <gtest/gtest.h>

namespace fleetx::team {
namespace {

using namespace std::chrono_literals;
using Time = Contention::Clock::time_point;

// Regions of 1 ms one after the other from `now` on, until the team's leader is alone or the time
// is up; what a region would take alone is given.
Time run(Contention& c, Time now, Time end, Contention::Clock::duration alone) {
  while (now < end && !c.is_alone(now)) {
    now += 1ms;
    c.add(alone, 1ms, now);
  }
  return now;
}

TEST(Contention, HelpersThatHelpAreKept) {
  Contention c;
  const Time end = Time() + 1s;
  EXPECT_EQ(run(c, Time(), end, 1900us), end);
  EXPECT_EQ(run(c, end, end + 1s, 1000us), end + 1s);  // no loss, either
}

TEST(Contention, HelpersThatHoldUpRestForLongerAndLonger) {
  Contention c;
  Time now = run(c, Time(), Time() + 1s, 500us);
  EXPECT_EQ(now, Time() + 15ms);
  const auto rest = [&] {
    Time wakes = now;
    while (c.is_alone(wakes)) wakes += 1ms;
    now = run(c, wakes, wakes + 1s, 500us);
    EXPECT_EQ(now, wakes + 15ms);
    return wakes;
  };
  Time last = now;
  for (const auto expected : {30ms, 60ms, 120ms, 240ms, 480ms, 800ms, 800ms}) {
    EXPECT_EQ(rest() - last, expected);
    last = now;
  }
}

TEST(Contention, OneStallInAWindowThatHelpersShortenIsNone) {
  Contention c;
  for (int round = 0; round < 50; ++round) {
    c.add(20ms, 10ms, Time() + 1ms);
    c.add(0ms, 3ms, Time() + 2ms);  // a time slice
    EXPECT_FALSE(c.is_alone(Time() + 3ms));
  }
}

TEST(Contention, AfterAWindowThatHelpsTheRestIsShortAgain) {
  Contention c;
  Time now = Time();
  for (int i = 0; i < 6; ++i) c.add(0ms, 15ms, now);
  EXPECT_TRUE(c.is_alone(now + 799ms));
  now += 1s;
  c.add(30ms, 15ms, now);
  c.add(0ms, 15ms, now);
  EXPECT_TRUE(c.is_alone(now + 29ms));
  EXPECT_FALSE(c.is_alone(now + 30ms));
}

}  // namespace
}  // namespace fleetx::team
