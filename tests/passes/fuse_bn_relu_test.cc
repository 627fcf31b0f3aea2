#include "fleetx/passes/passes.h"
#include "tests/passes/texts.h"

namespace fleetx::passes {
namespace {

const std::string kNormVars = R"(program
data x : f32[-1,3,8,8]
data dout : f32[-1,3,8,8]
param s : f32[3]
param b : f32[3]
state m : f32[3]
state v : f32[3]
var sm : f32[3]
var si : f32[3]
var out : f32[-1,3,8,8]
var dx : f32[-1,3,8,8]
var ds : f32[3]
var db : f32[3]
)";
const std::string kBnRelu = kNormVars + R"(var y : f32[-1,3,8,8]
var dy : f32[-1,3,8,8]
var other : f32[-1,3,8,8]

forward:
y, m, v, sm, si = batch_norm(x, s, b, m, v) {name="bn_0"}
out = relu(y)
)";
const std::string kBackward = R"(
backward:
dy = relu_grad(out, dout)
dx, ds, db = batch_norm_grad(x, s, b, sm, si, dy) {name="bn_0"}
)";

TEST(FuseBnRelu, ForwardAndBackward) {
  expect_rewrite(fuse_bn_relu, kBnRelu + kBackward, kNormVars + R"(var other : f32[-1,3,8,8]

forward:
out, m, v, sm, si = batch_norm(x, s, b, m, v) {name="bn_0", act="relu"}

backward:
dx, ds, db = batch_norm_grad(x, s, b, sm, si, dout) {name="bn_0", act="relu"}
)");
}

TEST(FuseBnRelu, BackwardStaysWhereTheGradientHasAnotherReader) {
  expect_rewrite(fuse_bn_relu, kBnRelu + kBackward + "other = scale(dy)\n",
                 kNormVars + R"(var dy : f32[-1,3,8,8]
var other : f32[-1,3,8,8]

forward:
out, m, v, sm, si = batch_norm(x, s, b, m, v) {name="bn_0", act="relu"}

backward:
dy = relu_grad(out, dout)
dx, ds, db = batch_norm_grad(x, s, b, sm, si, dy) {name="bn_0"}
other = scale(dy)
)");
}

TEST(FuseBnRelu, NotWhereTheOutputOfBatchNormIsNeeded) {
  expect_unchanged(fuse_bn_relu, kBnRelu + "other = scale(y)\n" + kBackward);
  expect_unchanged(fuse_bn_relu, kBnRelu + kBackward, {"y"});
}

TEST(FuseBnRelu, NotOtherActivations) {
  expect_unchanged(fuse_bn_relu, kNormVars + R"(var y : f32[-1,3,8,8]

forward:
y, m, v, sm, si = batch_norm(x, s, b, m, v)
out = tanh(y)
)");
}

// The mask is found again from x, so the backward pair must belong to this very batch_norm.
TEST(FuseBnRelu, NotTheBackwardOfAnotherBatchNorm) {
  expect_rewrite(fuse_bn_relu, kNormVars + R"(data z : f32[-1,3,8,8]
var y : f32[-1,3,8,8]
var dy : f32[-1,3,8,8]

forward:
y, m, v, sm, si = batch_norm(x, s, b, m, v)
out = relu(y)

backward:
dy = relu_grad(out, dout)
dx, ds, db = batch_norm_grad(z, s, b, sm, si, dy)
)",
                 kNormVars + R"(data z : f32[-1,3,8,8]
var dy : f32[-1,3,8,8]

forward:
out, m, v, sm, si = batch_norm(x, s, b, m, v) {act="relu"}

backward:
dy = relu_grad(out, dout)
dx, ds, db = batch_norm_grad(z, s, b, sm, si, dy)
)");
}

}  // namespace
}  // namespace fleetx::passes
