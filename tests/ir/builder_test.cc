#include "fleetx/ir/builder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/ir/transform.h"
#include "fleetx/ir/verifier.h"
#include "tests/support/expect_error.h"
#include "tests/support/sample_program.h"

namespace fleetx::ir {
namespace {

using testing::error_of;

TEST(Builder, UnknownBatchFlowsThroughShapes) {
  testing::SampleProgram sample;
  EXPECT_EQ(sample.logits.shape(), (Shape{-1, 3}));
  EXPECT_EQ(sample.loss.shape(), (Shape{1}));
}

TEST(Builder, ErrorsPointAtTheUsersLine) {
  testing::SampleProgram sample;
  const auto at = sample.b.at({"/home/me/train.cc", 41});
  const auto layer = sample.b.in_layer("fc1");
  const std::string message = error_of([&] {
    (void)sample.b.op("fc", {{"x", sample.x}, {"w", sample.b.var("fc_1.w_0")}});
  });
  EXPECT_TRUE(message.starts_with("train.cc:41: fc 'fc1': ")) << message;
  EXPECT_NE(message.find("f32[-1,4]"), std::string::npos)
      << message;  // as the user knows it, not an example
  EXPECT_NE(message.find("f32[8,3]"), std::string::npos) << message;
}

TEST(Builder, WrongCallsSayWhatIsWrong) {
  testing::SampleProgram s;
  EXPECT_EQ(error_of([&] {
              (void)s.b.op("scale", {{"y", s.x}});
            }),
            "scale 'scale_0': no input 'y'; it has: x");
  EXPECT_EQ(error_of([&] { (void)s.b.op("scale", {}); }),
            "scale 'scale_1': input 'x' must be given");
  EXPECT_NE(error_of([&] {
              (void)s.b.op("scael", {{"x", s.x}});
            }).find("did you mean 'scale'"),
            std::string::npos);
  EXPECT_NE(
      error_of([&] { (void)s.b.data("x", DType::kF32, {1}); }).find("already has a variable 'x'"),
      std::string::npos);
  EXPECT_NE(error_of([&] {
              (void)s.b.parameter({.name = "fc_0.w_0", .shape = {5, 5}});
            }).find("f32[4,8]"),
            std::string::npos);
  testing::SampleProgram other;
  EXPECT_NE(error_of([&] {
              (void)s.b.op("scale", {{"x", other.x}});
            }).find("is of another program"),
            std::string::npos);
}

TEST(Builder, ParametersAreSharedByName) {
  testing::SampleProgram s;
  const size_t before = s.startup.ops().size();
  (void)s.b.parameter({.name = "fc_0.w_0", .shape = {4, 8}});
  EXPECT_EQ(s.startup.ops().size(), before);
}

TEST(Transform, CloneForTestSwitchesAndDropsTheBackwardPart) {
  testing::SampleProgram s;
  const Var d = s.b.op("dropout", {{"x", s.logits}}, {{"p", 0.5}});
  {
    const auto role = s.b.in_role(Role::kBackward);
    (void)s.b.op("scale", {{"x", d}});
  }
  const Program test = clone_for_test(s.main);
  verify(test);
  EXPECT_EQ(test.ops().size(), s.main.ops().size() - 1);
  EXPECT_TRUE(test.ops().back().attr<bool>("is_test"));
  EXPECT_FALSE(s.main.ops().back().type() == "dropout");
}

TEST(Transform, PruneKeepsOnlyWhatTheTargetsNeed) {
  testing::SampleProgram s;
  const Program pruned = prune(s.main, {s.logits.name()});
  verify(pruned);
  EXPECT_EQ(pruned.ops().size(), 3u);  // fc, relu, fc
  EXPECT_EQ(pruned.find("label"), nullptr);
  EXPECT_NE(pruned.find("x"), nullptr);
  EXPECT_THROW((void)prune(s.main, {"nothing"}), Error);
}

TEST(Transform, ComputedVariablesBecomeInputs) {
  testing::SampleProgram s;
  const std::string hidden = std::next(s.main.ops().begin())->out("out").front();  // of the relu
  const Program fed = with_fed(s.main, {hidden});
  verify(fed);
  EXPECT_TRUE(fed.var(hidden).is_data);
  EXPECT_NE(fed.find(hidden + "_unread"), nullptr);
  EXPECT_TRUE(std::ranges::none_of(fed.ops(), [&](const Op& op) { return op.writes(hidden); }));
  EXPECT_FALSE(s.main.var(hidden).is_data);
  EXPECT_THROW((void)with_fed(s.main, {s.main.parameters().front()->name}), Error);
}

TEST(Rewriter, InsertsReplacesAndErases) {
  testing::SampleProgram s;
  const uint64_t version = s.main.version();
  Rewriter rw(s.main);
  auto relu = rw.begin();
  ++relu;
  ASSERT_EQ(relu->type(), "relu");
  const std::string out = relu->out("out").front(), scaled = rw.fresh_name(out + "@scaled");
  auto scale = rw.insert(
      std::next(relu),
      {"scale", {{"x", {out}}}, {{"out", {scaled}}}, {{"scale", 3.0}}, Role::kForward, "", {}});
  rw.replace_later_uses(std::next(scale), out, scaled);
  verify(s.main);
  EXPECT_GT(s.main.version(), version);
  EXPECT_EQ(std::next(scale)->in("x").front(), scaled);
  rw.replace_later_uses(std::next(scale), scaled, out);
  rw.erase(scale);
  rw.drop_unused_vars();
  EXPECT_EQ(s.main.find(scaled), nullptr);
  verify(s.main);
}

TEST(Verifier, NamesOpVariableAndLine) {
  testing::SampleProgram s;
  Rewriter rw(s.main);
  rw.erase(rw.begin());  // fc_0's output is now read but never written
  const std::string message = error_of([&] { verify(s.main, "after pass 'test'"); });
  EXPECT_TRUE(message.starts_with(
      "after pass 'test': sample.cc:7: relu 'relu_0': reads 'fc_0.tmp_0' before"))
      << message;
}

}  // namespace
}  // namespace fleetx::ir
