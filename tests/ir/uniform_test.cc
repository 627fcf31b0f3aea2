#include "fleetx/ir/uniform.h"

#include <gtest/gtest.h>

#include "fleetx/ir/text.h"

namespace fleetx::ir {
namespace {

using Set = std::set<std::string, std::less<>>;

constexpr const char* kRanks = R"(program
data x : f32[4]
param w : f32[4]
state mine : f32[4] per_rank(dp, average)
state sum : f32[4]
state copied : f32[4]
state count : i64[1]
var y : f32[4]
var t : i64[1]
var r : f32[4]
var z : f32[4]
var all : f32[8]

forward:
y = elementwise_add(x, w)
z = scale(w)
r = elementwise_add(z, mine)
[all] = all_gather([y]) {group="dp", ranks=2}
count = increment(count) {value=1.0}
sum = elementwise_add(sum, y)
copied = assign(sum)
)";

TEST(Uniform, FollowsFromConstantsReplicatedStateAndCollectives) {
  const Program p = parse_text(kRanks);
  const Uniform dp(p, "dp");
  EXPECT_TRUE(dp.holds("w"));
  EXPECT_TRUE(dp.holds("z"));
  EXPECT_TRUE(dp.holds("count"));
  EXPECT_TRUE(dp.holds("all"));  // everybody has all of them
  EXPECT_FALSE(dp.holds("y"));   // from what is fed
  EXPECT_FALSE(dp.holds("r"));   // from state that each rank has for itself
  EXPECT_FALSE(dp.holds("mine"));
  // Declared replicated, but written with values of one rank; what follows from it diverges too.
  EXPECT_EQ(dp.diverging(), (Set{"copied", "sum"}));
}

TEST(Uniform, IsAskedForOneGroup) {
  const Program p = parse_text(kRanks);
  const Uniform mp(p, "mp");
  EXPECT_TRUE(mp.holds("mine"));  // differs along dp only
  EXPECT_FALSE(mp.holds("all"));  // gathered over dp from values that differ along mp
  const Uniform both(p, "dp+mp");
  EXPECT_FALSE(both.holds("all"));
  EXPECT_TRUE(both.holds("z"));
}

TEST(Uniform, RanksMayBeFedTheSame) {
  const Program p = parse_text(R"(program
data x : f32[4]
param w : f32[4] sharded(mp, 0)
var y : f32[4]
var z : f32[4]

forward:
y = scale(x)
z = elementwise_mul(x, w)
)");
  const Uniform mp(p, "mp", Uniform::Feeds::kSame);
  EXPECT_TRUE(mp.holds("y"));
  EXPECT_FALSE(mp.holds("z"));
  EXPECT_FALSE(Uniform(p, "mp").holds("y"));
}

TEST(Uniform, DivergenceOfOneStepReachesTheNext) {
  // `second` is written before `first` becomes different: it differs from the second step on.
  const Program p = parse_text(R"(program
data x : f32[4]
state first : f32[4]
state second : f32[4]

forward:
second = assign(first)
first = assign(x)
)");
  EXPECT_EQ(Uniform(p, "dp").diverging(), (Set{"first", "second"}));
}

TEST(Uniform, AGuardThatDiffersMakesStateDiffer) {
  const Program p = parse_text(R"(program
state on : bool[1] per_rank(dp, reset)
state counter : i64[1]

forward:
counter = increment(counter) {value=1.0} if on
)");
  EXPECT_EQ(Uniform(p, "dp").diverging(), Set{"counter"});
  EXPECT_EQ(Uniform(p, "mp").diverging(), Set{});
}

}  // namespace
}  // namespace fleetx::ir
