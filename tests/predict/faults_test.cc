#include "fleetx/predict/faults.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace fleetx::predict {
namespace {

using testing::expect_error;

// 100 hosts that fail once in 1,000 hours each: the job fails every 10 hours.
FaultModel model() {
  return {.hosts = 100,
          .failures = {.mtbf_s = 3600.0 * 1000, .checkpoint_s = 30, .restart_s = 300}};
}

TEST(Faults, TheSimulationIsNearTheFormula) {
  for (const double interval : {200.0, 1500.0, 10'000.0, 40'000.0}) {
    const double simulated = simulate_faults(model(), interval, 50'000).useful;
    EXPECT_NEAR(simulated, expected(model(), interval).useful, 0.01) << interval;
  }
}

TEST(Faults, TheBestIntervalIsYoungsWhereFailuresAreRare) {
  const Efficiency best = best_interval(model());
  EXPECT_NEAR(best.interval_s, young_interval(model()), 0.05 * best.interval_s);
  EXPECT_GT(best.useful, 0.93);
  EXPECT_GT(expected(model(), best.interval_s).useful,
            expected(model(), best.interval_s * 1.2).useful);
  EXPECT_GT(expected(model(), best.interval_s).useful,
            expected(model(), best.interval_s / 1.2).useful);
}

TEST(Faults, MoreHostsAreLessUseful) {
  FaultModel many = model();
  many.hosts = 10'000;
  EXPECT_LT(best_interval(many).useful, best_interval(model()).useful);
}

TEST(Faults, AreTheSameEveryTime) {
  EXPECT_EQ(simulate_faults(model(), 1000).useful, simulate_faults(model(), 1000).useful);
}

TEST(Faults, WhatIsNotKnownIsSaid) {
  expect_error(Error::Kind::kInvalidArgument, {"how often hosts fail is not known"},
               [] { best_interval({.hosts = 1}); });
  expect_error(Error::Kind::kInvalidArgument, {"must be positive"},
               [] { simulate_faults(model(), 0); });
}

}  // namespace
}  // namespace fleetx::predict
