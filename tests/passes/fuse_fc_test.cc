#include "fleetx/passes/passes.h"
#include "tests/passes/texts.h"

namespace fleetx::passes {
namespace {

const std::string kForwardVars = R"(program
data x : f32[-1,4]
param wq : f32[4,3]
param wk : f32[4,3]
param wv : f32[4,3]
param bq : f32[3]
param bk : f32[3]
param bv : f32[3]
var q : f32[-1,3]
var k : f32[-1,3]
var v : f32[-1,3]
var out : f32[-1,3]
)";

TEST(FuseFc, LayersThatReadTheSame) {
  expect_rewrite(fuse_fc, kForwardVars + R"(
forward:
q = fc(x, wq, bq)
k = fc(x, wk, bk)
out = elementwise_mul(q, k)
v = fc(x, wv, bv)
)",
                 kForwardVars + R"(
forward:
[q, k, v] = fc_group(x, [wq, wk, wv], [bq, bk, bv])
out = elementwise_mul(q, k)
)",
                 {"q", "out", "v"});
}

TEST(FuseFc, CanBeSkipped) {
  const std::string text = kForwardVars + "\nforward:\nq = fc(x, wq, bq)\nk = fc(x, wk, bk)\n";
  const auto layers = [&](const std::set<std::string>& skip) {
    ir::Program program = ir::parse_text(text);
    run_local_passes(program, {.keep = {"q", "k"}, .skip = skip});
    return program.ops().size();
  };
  EXPECT_EQ(layers({}), 1u);
  EXPECT_EQ(layers({"fuse_fc"}), 2u);
}

TEST(FuseFc, OnlyLayersOfOneKind) {
  const std::string forward = "\nforward:\nq = fc(x, wq, bq)\n";
  expect_unchanged(fuse_fc, kForwardVars + forward);
  expect_unchanged(fuse_fc, kForwardVars + forward + "k = fc(x, wk, bk) {act=\"relu\"}\n");
  expect_unchanged(fuse_fc, kForwardVars + forward + "k = fc(x, wk, _)\n");
  expect_unchanged(fuse_fc, kForwardVars + "\nforward:\nq = fc(x, wq, _)\nk = fc(x, wk, _)\n");
  expect_unchanged(fuse_fc, kForwardVars + "param wide : f32[4,5]\nparam b : f32[5]\n" +
                                "var y : f32[-1,5]\n" + forward + "y = fc(x, wide, b)\n");
  expect_unchanged(fuse_fc,
                   kForwardVars + "data z : f32[-1,4]\n" + forward + "k = fc(z, wk, bk)\n");
  expect_unchanged(fuse_fc, kForwardVars + forward + "\nbackward:\nk = fc(x, wk, bk)\n");
}

TEST(FuseFc, TwoKindsAreTwoGroups) {
  const std::string vars = kForwardVars + R"(param wide : f32[4,5]
param b : f32[5]
var y : f32[-1,5]
var z : f32[-1,5]
)";
  expect_rewrite(fuse_fc, vars + R"(
forward:
q = fc(x, wq, bq)
y = fc(x, wide, b)
k = fc(x, wk, bk)
z = fc(x, wide, b)
)",
                 vars + R"(
forward:
[q, k] = fc_group(x, [wq, wk], [bq, bk])
[y, z] = fc_group(x, [wide, wide], [b, b])
)");
}

TEST(FuseFc, NotWhereSomethingChangesBetween) {
  for (const std::string change : {"wk = scale(wk) {scale=2.0}\n", "bk = scale(bk) {scale=2.0}\n"})
    expect_unchanged(
        fuse_fc, kForwardVars + "\nforward:\nq = fc(x, wq, bq)\n" + change + "k = fc(x, wk, bk)\n");
  // The other weights, which only the first layer reads, may change behind it.
  expect_rewrite(fuse_fc, kForwardVars + R"(
forward:
q = fc(x, wq, bq)
wq = scale(wq) {scale=2.0}
k = fc(x, wk, bk)
)",
                 kForwardVars + R"(
forward:
[q, k] = fc_group(x, [wq, wk], [bq, bk])
wq = scale(wq) {scale=2.0}
)");
  // x is a state that is changed.
  const std::string state = R"(program
state x : f32[2,4]
param wq : f32[4,3]
param wk : f32[4,3]
param bq : f32[3]
var q : f32[2,3]
var k : f32[2,3]

forward:
q = fc(x, wq, bq)
x = scale(x) {scale=2.0}
k = fc(x, wk, bq)
)";
  expect_unchanged(fuse_fc, state);
}

TEST(FuseFc, NotFarApart) {
  std::string vars = kForwardVars, between;
  for (int i = 0; i < 40; ++i) {
    vars += str("var t", i, " : f32[-1,3]\n");
    between += str("t", i, " = relu(q)\n");
  }
  const std::string first = vars + "\nforward:\nq = fc(x, wq, bq)\n" + between;
  expect_rewrite(fuse_fc, first + "k = fc(x, wk, bk)\nv = fc(x, wv, bv)\n",
                 first + "[k, v] = fc_group(x, [wk, wv], [bk, bv])\n");
}

const std::string kBackwardVars = R"(program
data x : f32[-1,4]
data dq : f32[-1,3]
data dk : f32[-1,3]
data dv : f32[-1,3]
data r : f32[-1,4]
param wq : f32[4,3]
param wk : f32[4,3]
param wv : f32[4,3]
var dwq : f32[4,3]
var dwk : f32[4,3]
var dwv : f32[4,3]
var dbq : f32[3]
var dbk : f32[3]
var dbv : f32[3]
var dx : f32[-1,4]
var y : f32[-1,4]
)";
const std::string kParts = R"(var dx0 : f32[-1,4]
var dx1 : f32[-1,4]
var dx2 : f32[-1,4]
)";
const std::string kGradients = R"(
backward:
dx0, dwv, dbv = fc_grad(x, wv, _, _, dv)
dx1, dwk, dbk = fc_grad(x, wk, _, _, dk)
dx2, dwq, dbq = fc_grad(x, wq, _, _, dq)
)";
const std::string kGroup =
    "[dwv, dwk, dwq], [dbv, dbk, dbq] = fc_group_grad(x, [wv, wk, wq], [dv, dk, dq], ";

TEST(FuseFc, Gradients) {
  expect_rewrite(fuse_fc, kBackwardVars + kParts + kGradients + "dx = sum([dx0, dx1, dx2])\n",
                 kBackwardVars + "\nbackward:\ndx, " + kGroup + "_)\n", {"dx"});
  expect_rewrite(fuse_fc, kBackwardVars + kParts + kGradients + "dx = sum([r, dx0, dx1, dx2])\n",
                 kBackwardVars + "\nbackward:\ndx, " + kGroup + "r)\n");
  // What is added is not there yet, or more than one: the sum remains.
  expect_rewrite(
      fuse_fc, kBackwardVars + kParts + kGradients + "y = relu(r)\ndx = sum([y, dx0, dx1, dx2])\n",
      kBackwardVars + "var dx0 : f32[-1,4]\n\nbackward:\ndx0, " + kGroup +
          "_)\ny = relu(r)\ndx = sum([y, dx0])\n");
  expect_rewrite(fuse_fc, kBackwardVars + kParts + kGradients + "dx = sum([r, dx0, dx1, dx2, x])\n",
                 kBackwardVars + "var dx0 : f32[-1,4]\n\nbackward:\ndx0, " + kGroup +
                     "_)\ndx = sum([r, x, dx0])\n");
}

TEST(FuseFc, GradientsOfDataAreNotAskedFor) {
  expect_rewrite(fuse_fc, kBackwardVars + R"(
backward:
_, dwv, _ = fc_grad(x, wv, _, _, dv)
_, dwk, _ = fc_grad(x, wk, _, _, dk)
)",
                 kBackwardVars + R"(
backward:
_, [dwv, dwk], [] = fc_group_grad(x, [wv, wk], [dv, dk], _)
)");
}

TEST(FuseFc, OneGradientTakesOverItsSum) {
  expect_rewrite(fuse_fc, kBackwardVars + R"(var dx0 : f32[-1,4]

backward:
dx0, dwv, dbv = fc_grad(x, wv, _, _, dv)
dx = sum([dx0, r])
)",
                 kBackwardVars + R"(
backward:
dx, [dwv], [dbv] = fc_group_grad(x, [wv], [dv], r)
)");
}

TEST(FuseFc, GradientsThatAreNeededForThemselves) {
  const std::string text = kBackwardVars + kParts + kGradients;
  expect_unchanged(fuse_fc, text);
  expect_unchanged(fuse_fc, kBackwardVars + "var dx0 : f32[-1,4]\n" + R"(
backward:
dx0, dwv, dbv = fc_grad(x, wv, _, _, dv)
dx = sum([dx0, dx0, r])
)");
  // dx0 is fetched.
  expect_rewrite(fuse_fc, text + "dx = sum([dx0, dx1, dx2])\n",
                 kBackwardVars + "var dx0 : f32[-1,4]\n" + R"(
backward:
dx0, dwv, dbv = fc_grad(x, wv, _, _, dv)
dx, [dwk, dwq], [dbk, dbq] = fc_group_grad(x, [wk, wq], [dk, dq], dx0)
)",
                 {"dx0"});
}

// Of an attention that is written out, one dout after the other is computed.
TEST(FuseFc, GradientsThatComeOneAfterTheOther) {
  const std::string vars = kBackwardVars + "var late : f32[-1,3]\n";
  const std::string before = R"(var dx0 : f32[-1,4]
var dx1 : f32[-1,4]

backward:
dx0, dwv, dbv = fc_grad(x, wv, _, _, dv)
late = relu(dk)
)";
  const std::string behind = R"(dx1, dwk, dbk = fc_grad(x, wk, _, _, late)
dx = sum([dx0, dx1])
)";
  expect_rewrite(fuse_fc, vars + before + behind, vars + R"(
backward:
late = relu(dk)
dx, [dwv, dwk], [dbv, dbk] = fc_group_grad(x, [wv, wk], [dv, late], _)
)");
  // The first gradient is used, or its weights change, before the last one can be computed: then
  // the last one adds to its dx.
  for (const std::string change : {"n = relu(dwv)\n", "wv = scale(wv) {scale=2.0}\n"})
    expect_rewrite(fuse_fc, vars + "var n : f32[4,3]\n" + before + change + behind,
                   vars + R"(var n : f32[4,3]
var dx0 : f32[-1,4]

backward:
dx0, dwv, dbv = fc_grad(x, wv, _, _, dv)
late = relu(dk)
)" + change + "dx, [dwk], [dbk] = fc_group_grad(x, [wk], [late], dx0)\n");
}

// Workers' all-reduces write gradients in place, between the layers.
TEST(FuseFc, GradientsThatAreReducedBetween) {
  expect_rewrite(fuse_fc, kBackwardVars + R"(var dx0 : f32[-1,4]
var dx1 : f32[-1,4]

backward:
dx0, dwv, dbv = fc_grad(x, wv, _, _, dv)
dwv = scale(dwv) {scale=0.5}
dx1, dwk, dbk = fc_grad(x, wk, _, _, dk)
dwk = scale(dwk) {scale=0.5}
dx = sum([dx0, dx1])
)",
                 kBackwardVars + R"(
backward:
dx, [dwv, dwk], [dbv, dbk] = fc_group_grad(x, [wv, wk], [dv, dk], _)
dwv = scale(dwv) {scale=0.5}
dwk = scale(dwk) {scale=0.5}
)");
}

}  // namespace
}  // namespace fleetx::passes
