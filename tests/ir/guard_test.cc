// Guards on the level of programs: what the verifier allows, how they are written and saved, and
// what the passes do with them. How a plan skips a step: tests/runtime/guard_test.cc.
#include <gtest/gtest.h>

#include "fleetx/ir/builder.h"
#include "fleetx/ir/proto.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/ir/transform.h"
#include "fleetx/ir/verifier.h"
#include "fleetx/passes/pass.h"
#include "tests/ir/parse_error.h"
#include "tests/support/expect_error.h"

namespace fleetx::ir {
namespace {

using testing::contains;

constexpr const char* kVars = R"(program
data x : f32[4]
state n : i64[1]
state k : i64[1]
state kept : f32[4]
state on : bool[1]
var now : bool[1]
var a : f32[4]
var b : f32[4]
)";

std::string guard_error(const std::string& ops) { return parse_error(kVars + ops); }

TEST(Guard, IsWrittenBehindTheOp) {
  const std::string text = std::string(kVars) + R"(
forward:
now = equal(n, k)
a = scale(x) {scale=2.0} if now
kept = scale(a) if now @ "train.cc":7
)";
  const Program p = parse_text(text, "p.txt");
  EXPECT_EQ(p.ops().back().guard, "now");
  EXPECT_TRUE(p.ops().back().reads("now"));
  EXPECT_EQ(parse_text(to_text(p)), p);
  EXPECT_EQ(parse_proto(to_proto(p), "p.pb"), p);
  EXPECT_NE(to_text(p).find("a = scale(x) {scale=2.0} if now\n"), std::string::npos) << to_text(p);
}

TEST(Guard, IsInheritedFromTheBuilder) {
  Program main, startup;
  Builder b(main, startup);
  const Var x = b.data("x", DType::kF32, {4});
  const Var on = b.state("on", DType::kBool, {1});
  {
    const auto under = b.under(on);
    b.op("assign", {{"x", x}}, {}, {{"out", b.state("kept", DType::kF32, {4})}});
  }
  b.op("scale", {{"x", x}});
  EXPECT_EQ(main.ops().front().guard, "on");
  EXPECT_EQ(main.ops().back().guard, "");
  EXPECT_TRUE(startup.ops().front().guard.empty());
  verify(main);
}

TEST(Guard, MustBeOneBool) {
  EXPECT_TRUE(contains(guard_error("forward:\na = scale(x) if n\n"), "must be bool[1]"));
  EXPECT_TRUE(contains(guard_error("forward:\na = scale(x) if n\n"), "'n' is i64[1]"));
  EXPECT_TRUE(contains(guard_error("forward:\na = scale(x) if nothing\n"), "'nothing'"));
  EXPECT_TRUE(contains(guard_error("forward:\na = scale(x) if now\n"), "before any op"));
}

TEST(Guard, WhatIsComputedUnderItIsReadUnderItOnly) {
  const std::string error = guard_error("forward:\na = scale(x) if on\nb = scale(a)\n");
  EXPECT_TRUE(contains(error, "reads 'a'"));
  EXPECT_TRUE(contains(error, "only where 'on' is true"));
  EXPECT_TRUE(contains(error, "same guard"));
  EXPECT_TRUE(contains(
      guard_error("forward:\nnow = equal(n, k)\na = scale(x) if on\nb = scale(a) if now\n"),
      "has the guard 'now'"));
  // State has a value in every step, and so does what was there before.
  EXPECT_EQ(guard_error("forward:\nkept = scale(x) if on\nb = scale(kept)\n"), "no error");
  EXPECT_EQ(guard_error("forward:\na = scale(x) if on\nb = scale(a) if on\n"), "no error");
}

TEST(Guard, HasAValueInEveryStep) {
  const std::string error =
      guard_error("forward:\nnow = equal(n, k) if on\nkept = scale(x) if now\n");
  EXPECT_TRUE(contains(error, "scale: its guard 'now' is computed only where 'on' is true"));
  EXPECT_TRUE(contains(error, "logical_and"));
  // State has the value of an earlier step.
  EXPECT_EQ(guard_error("state more : bool[1]\nforward:\n"
                        "more = equal(n, k) if on\nkept = scale(x) if more\n"),
            "no error");
}

TEST(Guard, KeepsItsValueForTheWholeStep) {
  EXPECT_TRUE(contains(guard_error("forward:\nkept = scale(x) if on\non = equal(n, k)\n"),
                       "is the guard of an op before it"));
}

TEST(Guard, OfACollectiveIsTheSameOnAllRanks) {
  // Computed from a counter that all ranks have: fine.
  EXPECT_EQ(guard_error("forward:\nnow = equal(n, k)\n"
                        "[kept] = broadcast([kept]) {group=\"dp\"} if now\n"),
            "no error");
  // Computed from what is fed: each rank has its own.
  const std::string vars = "var half : f32[4]\nvar big : bool[4]\nvar any : bool[1]\n";
  const std::string error =
      guard_error(vars +
                  "forward:\nhalf = scale(x) {scale=0.5}\nbig = less_than(half, x)\n"
                  "any = slice(big) {axes=[0], starts=[0], ends=[1]}\n"
                  "[kept] = broadcast([kept]) {group=\"dp\"} if any\n");
  EXPECT_TRUE(contains(error, "'any' may differ between the ranks of the group 'dp'"));
  EXPECT_TRUE(contains(error, "broadcast"));
}

TEST(Guard, OfStateThatDiffersBetweenRanksIsRefusedToo) {
  const std::string own = "state mine : bool[1] per_rank(dp, reset)\nforward:\n";
  EXPECT_TRUE(contains(guard_error(own + "[kept] = broadcast([kept]) {group=\"dp\"} if mine\n"),
                       "may differ"));
  EXPECT_EQ(guard_error(own + "[kept] = broadcast([kept]) {group=\"mp\"} if mine\n"), "no error");
}

TEST(Guard, PassesKeepIt) {
  Program p = parse_text(std::string(kVars) + R"(state out : f32[4]
forward:
now = equal(n, k)
a = scale(x) {scale=2.0} if now
b = scale(a) {scale=3.0} if now
out = assign(b) if now
)");
  passes::run_local_passes(p, {});
  for (const Op& op : p.ops())
    EXPECT_EQ(op.guard, op.type() == "equal" ? "" : "now") << to_text(op);
  EXPECT_EQ(p.ops().front().type(), "equal") << "whoever computes a guard is needed";
}

TEST(Guard, FusionsDoNotCrossIt) {
  // b is needed in every step, a chain with the guarded op must not be made.
  Program p = parse_text(std::string(kVars) + R"(var c : f32[4]
state out : f32[4]
forward:
a = scale(x) {scale=2.0}
b = scale(a) {scale=3.0} if on
out = assign(b) if on
)");
  passes::run_local_passes(p, {});
  for (const Op& op : p.ops()) EXPECT_EQ(op.guard.empty(), op.writes("a")) << to_text(op);
}

TEST(Guard, UpdatesOfOneGuardAreFused) {
  const auto text = [](const char* second) {
    return str(R"(program
param w : f32[4]
param v : f32[4]
state lr : f32[1]
state on : bool[1]
state off : bool[1]
data dw : f32[4]
data dv : f32[4]

update:
[w] = sgd([w], [dw], lr, _) if on
[v] = sgd([v], [dv], lr, _) if )",
               second, "\n");
  };
  Program same = parse_text(text("on")), apart = parse_text(text("off"));
  passes::run_local_passes(same, {});
  passes::run_local_passes(apart, {});
  ASSERT_EQ(same.ops().size(), 1u);
  EXPECT_EQ(same.ops().front().guard, "on");
  EXPECT_EQ(apart.ops().size(), 2u);
}

TEST(Guard, PruneKeepsWhoComputesIt) {
  const Program p = parse_text(std::string(kVars) + R"(
forward:
now = equal(n, k)
kept = scale(x) if now
)");
  const Program pruned = prune(p, {"kept"});
  EXPECT_EQ(pruned.ops().size(), 2u);
  verify(pruned);
}

}  // namespace
}  // namespace fleetx::ir
