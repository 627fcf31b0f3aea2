// A global norm of gradients that the ranks of a group divide between them.
#include "fleetx/strategies/divided_norms.h"

#include <gtest/gtest.h>

#include <set>

#include "fleetx/ir/text.h"
#include "tests/support/expect_error.h"

namespace fleetx::strategies::divided_norms_test {
namespace {

using Lines = std::vector<std::string>;

constexpr const char* kText = R"(program
param w : f32[2]
param v : f32[3]
state ready : bool[1]
var dw : f32[2]
var dv : f32[3]
var other : f32[3]
var n : f32[1]

backward:
dw = fill() {shape=[2], value=1.0}
dv = fill() {shape=[3], value=1.0}
other = fill() {shape=[3], value=1.0}

update:
n = squared_l2_norm([dw, dv]) if ready

training:
parameter(w, dw, _)
parameter(v, dv, _)
)";

Lines updates(const std::set<std::string>& own, ir::Program main = ir::parse_text(kText)) {
  ir::Rewriter rw(main);
  add_up_norms(rw, main.training(), "dp/2",
               [&](const std::string& parameter) { return own.contains(parameter); });
  Lines lines;
  for (const ir::Op& op : main.ops())
    if (op.role == ir::Role::kUpdate) lines.push_back(ir::to_text(op));
  return lines;
}

TEST(DividedNorms, EachRankTakesItsOwn) {
  const std::string sum = R"([n] = all_reduce([n]) {group="dp/2", op="sum"} if ready)";
  EXPECT_EQ(updates({"w"}), (Lines{"n = squared_l2_norm([dw]) if ready", sum}));
  EXPECT_EQ(updates({"v"}), (Lines{"n = squared_l2_norm([dv]) if ready", sum}));
  EXPECT_EQ(updates({"w", "v"}), (Lines{"n = squared_l2_norm([dw, dv]) if ready", sum}));
}

// It still has to come to the call of the others.
TEST(DividedNorms, WhoHasNothingAddsZero) {
  EXPECT_EQ(updates({}), (Lines{R"(n = fill() {name="norm_of_nothing", shape=[1]} if ready)",
                                R"([n] = all_reduce([n]) {group="dp/2", op="sum"} if ready)"}));
}

// Those who divide a stage, then the stages: all ranks come to both sums.
TEST(DividedNorms, OverTwoGroups) {
  ir::Program main = ir::parse_text(kText);
  ir::Rewriter rw(main);
  for (const char* group : {"dp", "pp"})
    add_up_norms(rw, main.training(), group, [](const std::string&) { return false; });
  std::multiset<std::string> sums;
  for (const ir::Op& op : main.ops())
    if (op.type() == "all_reduce") sums.insert(op.attr<std::string>("group"));
  EXPECT_EQ(sums, (std::multiset<std::string>{"dp", "pp"}));
}

TEST(DividedNorms, WhatIsNoGradientIsOurMistake) {
  ir::Program main = ir::parse_text(kText);
  ir::Rewriter rw(main);
  rw.set_inputs(std::prev(rw.end()), "xs", {"dw", "other"});
  testing::expect_error(Error::Kind::kInternal, {"reads 'other', which is applied to no parameter"},
                        [&] { updates({"w"}, main); });
}

}  // namespace
}  // namespace fleetx::strategies::divided_norms_test
