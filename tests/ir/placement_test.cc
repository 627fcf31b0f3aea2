#include "fleetx/ir/placement.h"

#include <gtest/gtest.h>

#include "fleetx/ir/owned.h"
#include "fleetx/ir/program.h"
#include "fleetx/ir/proto.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/stand_in.h"
#include "fleetx/ir/text.h"
#include "tests/ir/parse_error.h"
#include "tests/support/expect_error.h"

namespace fleetx::ir {
namespace {

using testing::contains;
using testing::error_of;

constexpr const char* kPlaced = R"(program
param w : f32[5,8] sharded(mp, 0)
param table : f32[100,8] is_distributed
state residual : f32[5,8] per_rank(dp, sum)
state mean : f32[8] per_rank(dp, average)
state snapshot : f32[8] per_rank(dp, reset)
state weight : f32[1] transient
state step : i64[1]
)";

TEST(Placement, IsPartOfBothForms) {
  const Program p = parse_text(kPlaced);
  EXPECT_EQ(to_text(p), kPlaced);
  EXPECT_EQ(to_text(parse_proto(to_proto(p), "p.pb")), kPlaced);
  EXPECT_EQ(p.var("w").placement, Placement::sharded("mp", 0));
  EXPECT_EQ(p.var("residual").placement, Placement::per_rank("dp", Placement::Resize::kSum));
  EXPECT_TRUE(p.var("weight").placement.is_transient());
  EXPECT_TRUE(p.var("step").placement.is_replicated());
  EXPECT_TRUE(p.var("table").is_distributed);
  EXPECT_FALSE(p.var("w").is_distributed);
}

std::string place_error(const std::string& line) { return parse_error("program\n" + line + "\n"); }

TEST(Placement, WhatMakesNoSenseIsNamed) {
  EXPECT_TRUE(contains(place_error("var a : f32[4] transient"), "'a' is transient, but not"));
  EXPECT_TRUE(contains(place_error("param a : f32[4] transient"), "would not be saved"));
  EXPECT_TRUE(contains(place_error("state a : f32[4] sharded(mp, 1)"), "no dimension 1"));
  EXPECT_TRUE(contains(place_error("state a : f32[4] per_rank(dp, median)"), "average, sum"));
  EXPECT_TRUE(contains(place_error("state a : f32[4] shared(dp, sum)"), "unknown word 'shared'"));
}

// A temporary has no placement: who owns a gradient stands in its attributes.
TEST(Placement, OfAGradientWithAnOwner) {
  Program p = parse_text("program\nvar dw : f32[4] {owner=1, owners=\"pp\"}\nvar dv : f32[4]\n");
  EXPECT_EQ(gradient_owner(p.var("dw")), (Owner{"pp", 1}));
  EXPECT_EQ(gradient_owner(p.var("dv")), std::nullopt);
  EXPECT_EQ(owner_of(p.var("dw")), std::nullopt);  // that of state
  EXPECT_FALSE(differs_along(p.var("dw"), "pp"));
  set_gradient_owner(Rewriter(p).edit_var("dv"), {"dp/2", 0});
  EXPECT_EQ(gradient_owner(p.var("dv")), (Owner{"dp/2", 0}));
  EXPECT_EQ(parse_text(to_text(p)), p);
  EXPECT_EQ(parse_proto(to_proto(p), "p.pb"), p);
}

TEST(Placement, StateMayHaveAStandInInFiles) {
  Program p = parse_text("program\nstate a : f32[4] {stand_in=\"w\"}\nstate b : f32[4]\n");
  EXPECT_EQ(stand_in_of(p.var("a")), "w");
  EXPECT_EQ(stand_in_of(p.var("b")), std::nullopt);
  set_stand_in(Rewriter(p).edit_var("b"), "");
  EXPECT_EQ(stand_in_of(p.var("b")), "");
  EXPECT_EQ(parse_text(to_text(p)), p);
}

TEST(Placement, AnOwnerIsARankOfAGroup) {
  EXPECT_TRUE(contains(place_error("var d : f32[4] {owner=1}"),
                       "variable 'd' has one of the attributes 'owner' and 'owners'"));
  EXPECT_TRUE(contains(place_error("var d : f32[4] {owner=-1, owners=\"dp\"}"), "owner=-1"));
  EXPECT_TRUE(contains(place_error("var d : f32[4] {owner=1.5, owners=\"dp\"}"), "owner=1.5"));
  EXPECT_TRUE(contains(place_error("var d : f32[4] {owner=1, owners=2}"), "owners=2"));
  EXPECT_TRUE(contains(place_error("var d : f32[4] {stage=\"first\"}"), "must be a number"));
  EXPECT_TRUE(contains(
      place_error("param w : f32[4] sharded(mp, 0) {part_owner=\"a\", part_owners=\"pp\"}"),
      "must be a rank of the group"));
}

TEST(Placement, AShardIsAnEqualPart) {
  const Placement rows = Placement::sharded("mp", 0);
  EXPECT_EQ(shard_of({12, 8}, rows, 4, "w"), Shape({3, 8}));
  EXPECT_EQ(whole_of({3, 8}, rows, 4), Shape({12, 8}));
  EXPECT_EQ(shard_of({12, 8}, Placement(), 4, "w"), Shape({12, 8}));
  const std::string error = error_of([&] { shard_of({10, 8}, rows, 4, "w"); });
  EXPECT_TRUE(contains(error, "'w' is sharded(mp, 0)"));
  EXPECT_TRUE(contains(error, "dimension 0 of [10,8]"));
  EXPECT_TRUE(contains(error, "4 ranks of 'mp'"));
  EXPECT_TRUE(contains(error_of([&] { shard_of({10}, Placement::sharded("mp", 1), 2, "w"); }),
                       "no dimension 1"));
}

}  // namespace
}  // namespace fleetx::ir
