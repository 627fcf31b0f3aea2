#include "fleetx/runtime/check_fits.h"

#include <gtest/gtest.h>

#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/runtime/planner.h"
#include "tests/support/expect_error.h"

namespace fleetx::runtime {
namespace {

TEST(CheckFits, SaysHowMuchIsMissing) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var loss = nn::mean(nn::fc(b.data("x", f32, {-1, 512}), {.size = 1024, .bias = false}));
  optim::Adam({.lr = 0.1}).minimize(loss);
  const PlannedProgram plan =
      plan_program(main, {{"x", {f32, {4, 512}}}}, {loss.name()}, PlanOptions{});
  const auto needed = static_cast<double>(plan.peak_bytes());
  EXPECT_GT(needed, 6 << 20);  // the weight and two moments
  check_fits(plan, {.bytes = needed});
  const std::string small =
      testing::error_of([&] { check_fits(plan, {.bytes = needed - (1 << 20)}); });
  for (const char* part : {"does not fit into memory", "parameters 2.0 MiB", "state 4.0 MiB",
                           ", 1.0 MiB more than the ", "there are", "sharding", "strategy.auto"})
    EXPECT_TRUE(testing::contains(small, part)) << small;
  EXPECT_TRUE(testing::contains(
      testing::error_of([&] { check_fits(plan, {.bytes = 1, .by_cgroup = true}); }),
      "the control group of this process has"));
}

}  // namespace
}  // namespace fleetx::runtime
