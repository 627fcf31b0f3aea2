#include "fleetx/passes/passes.h"
#include "tests/passes/texts.h"

namespace fleetx::passes {
namespace {

const std::string kData = R"(program
data a : f32[8,4]
data b : f32[8,4]
data c : f32[8,4]
)";
const std::string kVars = kData + R"(var t : f32[8,4]
var u : f32[8,4]
var out : f32[8,4]

forward:
)";

TEST(FuseElementwise, AChain) {
  expect_rewrite(fuse_elementwise, kVars + R"(t = elementwise_mul(a, b)
u = scale(t) {scale=0.5, bias_after_scale=false}
out = elementwise_add(u, c) {act="relu"}
)",
                 kData + R"(var out : f32[8,4]

forward:
[out] = fused_elementwise([a, b, c]) {ops=["elementwise_mul", "scale", "elementwise_add"], args=["x0 x1", "t0", "t1 x2"], attrs=["", "scale=0.5 bias_after_scale=false", "act=relu"], results=[2]}
)");
}

TEST(FuseElementwise, BackwardAndTrees) {
  expect_rewrite(fuse_elementwise, kVars + R"(
backward:
t = tanh_grad(a, b)
u = relu_grad(c, b)
out = elementwise_mul(u, t)
)",
                 kData + R"(var out : f32[8,4]

backward:
[out] = fused_elementwise([a, b, c]) {ops=["tanh_grad", "relu_grad", "elementwise_mul"], args=["x0 x1", "x2 x1", "t1 t0"], results=[2]}
)");
}

TEST(FuseElementwise, AValueUsedTwiceByOneOp) {
  expect_rewrite(fuse_elementwise, kVars + R"(t = exp(a)
out = elementwise_mul(t, t)
u = sum([a, out, out])
)",
                 kData + R"(var u : f32[8,4]

forward:
[u] = fused_elementwise([a]) {ops=["exp", "elementwise_mul", "sum"], args=["x0", "t0 t0", "x0 t1 t1"], results=[2]}
)");
}

TEST(FuseElementwise, NotWhereAnIntermediateIsNeeded) {
  expect_unchanged(fuse_elementwise, kVars + "t = exp(a)\nout = tanh(t)\n", {"t"});
  expect_unchanged(fuse_elementwise, kVars + R"(t = exp(a)
u = tanh(t)
out = softmax(t)
)");
}

TEST(FuseElementwise, NotAcrossRoles) {
  expect_unchanged(fuse_elementwise, kVars + "t = exp(a)\n\nbackward:\nout = tanh_grad(t, b)\n");
}

TEST(FuseElementwise, OnlyOneTypeWithoutUnknownDimensions) {
  expect_unchanged(fuse_elementwise, R"(program
data a : f32[8,4]
data b : f32[4]
var t : f32[8,4]
var out : f32[8,4]

forward:
t = elementwise_add(a, b)
out = elementwise_mul(t, b)
)");
  expect_unchanged(fuse_elementwise, R"(program
data a : f32[-1,4]
var t : f32[-1,4]
var out : f32[-1,4]

forward:
t = exp(a)
out = tanh(t)
)");
  expect_unchanged(fuse_elementwise, R"(program
data a : i64[4]
var t : i64[4]
var out : i64[4]

forward:
t = square(a)
out = elementwise_add(t, t)
)");
}

TEST(FuseElementwise, NotPastAWrite) {
  expect_unchanged(fuse_elementwise, kData + R"(state s : f32[8,4]
var t : f32[8,4]
var out : f32[8,4]

forward:
t = exp(s)
s = scale(a)
out = tanh(t)
)");
}

// Moving the product would keep its two inputs alive across the softmax instead of one result.
TEST(FuseElementwise, NotWhereItCostsMemory) {
  const std::string vars = kData + R"(var d : f32[8,4]
var e : f32[8,4]
var t : f32[8,4]
var u : f32[8,4]
var out : f32[8,4]

forward:
d = softmax(a)
e = softmax(b)
t = elementwise_mul(d, e)
)";
  expect_unchanged(fuse_elementwise, vars + "u = softmax(c)\nout = elementwise_add(t, u)\n");
  ir::Program neighbours = ir::parse_text(vars + "out = elementwise_add(t, c)\n");
  fuse_elementwise(neighbours, {});
  EXPECT_EQ(neighbours.ops().back().type(), "fused_elementwise");
}

TEST(FuseElementwise, LongChainsAreCut) {
  std::string text = "program\ndata v0 : f32[8]\n", ops = "\nforward:\n";
  for (int i = 1; i <= 40; ++i) {
    text += str("var v", i, " : f32[8]\n");
    ops += str("v", i, " = scale(v", i - 1, ") {scale=0.5}\n");
  }
  ir::Program program = ir::parse_text(text + ops);
  fuse_elementwise(program, {.keep = {"v40"}});
  ASSERT_EQ(program.ops().size(), 3u);
  size_t steps = 0;
  for (const ir::Op& op : program.ops()) {
    steps += op.attr<ir::Strings>("ops").size();
    EXPECT_LE(op.attr<ir::Strings>("ops").size(), 16u);
  }
  EXPECT_EQ(steps, 40u);
}

}  // namespace
}  // namespace fleetx::passes
