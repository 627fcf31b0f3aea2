#include <gtest/gtest.h>

#include <limits>

#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

struct State {
  float scale;
  int32_t good, bad;
};

OpCase after(const char* label, bool finite, State before, State want, bool dynamic = true) {
  return {
      .label = label,
      .inputs = {OpInput("finite", Tensor::of<bool>({1}, {finite})),
                 OpInput("scale", Tensor::scalar(before.scale)).state(),
                 OpInput("good", Tensor::scalar(before.good)).state(),
                 OpInput("bad", Tensor::scalar(before.bad)).state()},
      .attrs = {{"incr_every_n_steps", 3},
                {"decr_every_n_nan_or_inf", 2},
                {"incr_ratio", 4.0},
                {"decr_ratio", 0.5},
                {"dynamic", dynamic}},
      .updates = {{"scale_out", "scale"}, {"good_out", "good"}, {"bad_out", "bad"}},
      .reference = [want](const Tensors&) -> Tensors {
        return {Tensor::scalar(want.scale), Tensor::scalar(want.good), Tensor::scalar(want.bad)};
      },
      .tolerance = 0};
}

const AddCases cases("update_loss_scaling", [](Cases& c) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  c.add(after("good", true, {8, 1, 1}, {8, 2, 0}));
  c.add(after("grows", true, {8, 2, 0}, {32, 0, 0}));
  c.add(after("stays_finite", true, {kLargest, 2, 0}, {kLargest, 0, 0}));
  c.add(after("bad", false, {8, 2, 0}, {8, 0, 1}));
  c.add(after("shrinks", false, {8, 0, 1}, {4, 0, 0}));
  c.add(after("floor", false, {1.5f, 0, 1}, {1, 0, 0}));
  c.add(after("at_the_floor", false, {1, 0, 1}, {1, 0, 0}));
  c.add(after("below_the_floor", false, {0.5f, 0, 1}, {0.5f, 0, 0}));
  c.add(after("constant_good", true, {8, 2, 1}, {8, 3, 0}, false));
  c.add(after("constant_bad", false, {8, 2, 1}, {8, 0, 2}, false));
});

TEST(UpdateLossScaling, RefusesRatiosThatGoTheWrongWay) {
  for (const auto& [name, value] :
       {std::pair{"incr_ratio", 1.0}, {"decr_ratio", 1.0}, {"decr_ratio", 0.0}}) {
    OpCase c = after("", true, {8, 0, 0}, {8, 1, 0});
    c.attrs.insert_or_assign(name, value);
    expect_error(Error::Kind::kInvalidArgument, {name}, [&] { run_op("update_loss_scaling", c); });
  }
}

// 1,000 bad steps at the floor are said once, with the op that overflows.
class StandingStill {
 public:
  StandingStill() {
    ir::Builder b(main_, startup_);
    const ir::Var finite = b.data("finite", boolean, {1}), first = b.data("first", i64, {1}),
                  loss = b.data("loss", f32, {1});
    const ir::Var scale = b.state("scale", f32, {1}, 1.0), good = b.state("good", i32, {1}),
                  bad = b.state("bad", i32, {1});
    b.op("update_loss_scaling",
         {{"finite", finite},
          {"scale", scale},
          {"good", good},
          {"bad", bad},
          {"first", first},
          {"loss", loss}},
         {{"makers", ir::Strings{"'mean_grad'", "'fc_grad' of 'fc_7'"}}},
         {{"scale_out", scale}, {"good_out", good}, {"bad_out", bad}});
    exe_.run(startup_, scope_);
  }

  // What is said in so many steps.
  std::string run(int steps, bool finite, float loss = 1) {
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < steps; ++i)
      exe_.run(main_, scope_,
               {{"finite", Tensor::of<bool>({1}, {finite})},
                {"first", Tensor::of<int64_t>({1}, {finite ? -1 : 1})},
                {"loss", Tensor::scalar(loss)}},
               {"scale"});
    return ::testing::internal::GetCapturedStderr();
  }

 private:
  ir::Program main_, startup_;
  runtime::Scope scope_;
  runtime::Executor exe_{runtime::ExecutorOptions{}};
};

TEST(UpdateLossScaling, SaysWhereTrainingStandsStill) {
  StandingStill training;
  EXPECT_EQ(training.run(999, false), "");
  EXPECT_EQ(training.run(1, true), "");
  EXPECT_EQ(training.run(999, false), "");
  const std::string said = training.run(1, false);
  for (const char* part : {"1000 steps", "scale is 1, its floor", "'fc_grad' of 'fc_7'",
                           "custom_black_list", "learning rate"})
    EXPECT_TRUE(contains(said, part)) << part << " in " << said;
  EXPECT_FALSE(contains(said, "mean_grad")) << said;
  EXPECT_EQ(training.run(2000, false), "");
}

// Backward knows nothing about an op of forward.
TEST(UpdateLossScaling, SaysHowToFindAnOpOfForward) {
  StandingStill training;
  const std::string said = training.run(1000, false, std::numeric_limits<float>::infinity());
  for (const char* part : {"the loss is inf", "FLEETX_CHECK_FINITE=1", "custom_black_list"})
    EXPECT_TRUE(contains(said, part)) << part << " in " << said;
  EXPECT_FALSE(contains(said, "fc_grad")) << said;
}

}  // namespace
}  // namespace fleetx::testing
