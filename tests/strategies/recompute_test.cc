#include <gtest/gtest.h>

#include "fleetx/ir/text.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

// Backward needs a (kept) and b (given up).
constexpr const char* kText = R"(program
data x : f32[-1,4]
state s : f32[4]
var a : f32[-1,4]
var b : f32[-1,4]
var c : f32[-1,4]
var dc : f32[-1,4]
var db : f32[-1,4]
var da : f32[-1,4]

forward:
a = scale(x) {scale=2.0}
b = scale(a) {scale=3.0}
c = elementwise_mul(b, a)

backward:
dc = fill_like(c) {value=1.0}
db = elementwise_mul(dc, a)
da = elementwise_mul(dc, b)
)";

ir::Program apply(const ir::Strings& checkpoints, const std::string& text = kText) {
  ir::Program main = ir::parse_text(text), startup;
  apply_strategies(main, startup, {{"recompute", {{"checkpoints", checkpoints}}}}, {});
  return main;
}

TEST(Recompute, BackwardReadsCopiesOfWhatIsNotKept) {
  const ir::Program main = apply({"a", "c"});
  std::vector<std::string> backward;
  for (const ir::Op& op : main.ops())
    if (op.role == ir::Role::kBackward) backward.push_back(ir::to_text(op));
  EXPECT_EQ(backward,
            (std::vector<std::string>{
                "dc = fill_like(c) {value=1.0}", "db = elementwise_mul(dc, a)",
                "b@RECOMPUTE = scale(a) {scale=3.0}", "da = elementwise_mul(dc, b@RECOMPUTE)"}));
}

TEST(Recompute, RefusesWhatMakesNoSense) {
  EXPECT_THROW(apply({}), Error);
  EXPECT_THROW(apply({"no_such_variable"}), Error);
  EXPECT_THROW(apply({"x"}), Error);
  EXPECT_THROW(apply({"s"}), Error);
  EXPECT_THROW(apply({"a"}, "program\ndata x : f32[4]\nvar a : f32[4]\n\nforward:\na = scale(x)\n"),
               Error);
}

}  // namespace
}  // namespace fleetx::strategies
