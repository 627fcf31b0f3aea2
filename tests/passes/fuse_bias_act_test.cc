#include "fleetx/passes/passes.h"
#include "tests/passes/texts.h"

namespace fleetx::passes {
namespace {

const std::string kFcVars = R"(program
data x : f32[-1,4]
data dout : f32[-1,3]
param w : f32[4,3]
param b : f32[3]
var out : f32[-1,3]
var dx : f32[-1,4]
var dw : f32[4,3]
var db : f32[3]
)";

// Backward does not change.
class FuseFcAct : public ::testing::TestWithParam<std::string> {};

TEST_P(FuseFcAct, Forward) {
  const std::string act = GetParam();
  const std::string backward = str("\nbackward:\ndz = ", act, R"(_grad(out, dout)
dx, dw, db = fc_grad(x, w, _, _, dz)
)");
  expect_rewrite(
      fuse_bias_act,
      str(kFcVars, "var z : f32[-1,3]\nvar dz : f32[-1,3]\n\nforward:\nz = fc(x, w, b)\nout = ",
          act, "(z)\n", backward),
      str(kFcVars, "var dz : f32[-1,3]\n\nforward:\nout = fc(x, w, b) {act=\"", act, "\"}\n",
          backward));
}

INSTANTIATE_TEST_SUITE_P(Acts, FuseFcAct, ::testing::Values("relu", "tanh", "sigmoid"));

const std::string kGelu = kFcVars + R"(var z : f32[-1,3]
var dz : f32[-1,3]

forward:
z = fc(x, w, b)
)";

TEST(FuseBiasAct, GeluOnlyWithoutBackward) {
  expect_rewrite(fuse_bias_act, kGelu + "out = gelu(z)\n", kFcVars + R"(var dz : f32[-1,3]

forward:
out = fc(x, w, b) {act="gelu"}
)");
  expect_unchanged(fuse_bias_act, kGelu + R"(out = gelu(z)

backward:
dz = gelu_grad(z, dout)
dx, dw, db = fc_grad(x, w, _, _, dz)
)");
}

TEST(FuseBiasAct, NotAnApproximationThatFcDoesNotHave) {
  expect_unchanged(fuse_bias_act, kGelu + "out = gelu(z) {approximate=true}\n");
}

TEST(FuseBiasAct, ConvolutionAndRelu) {
  const std::string vars = R"(program
data x : f32[-1,3,8,8]
data dout : f32[-1,4,6,6]
param w : f32[4,3,3,3]
param b : f32[4]
var out : f32[-1,4,6,6]
var dx : f32[-1,3,8,8]
var dw : f32[4,3,3,3]
var db : f32[4]
)";
  expect_rewrite(fuse_bias_act, vars + R"(var z : f32[-1,4,6,6]
var dz : f32[-1,4,6,6]

forward:
z = conv2d(x, w, b)
out = relu(z)

backward:
dz = relu_grad(out, dout)
dx, dw, db = conv2d_grad(x, w, _, dz)
)",
                 vars + R"(var dz : f32[-1,4,6,6]

forward:
out = conv2d(x, w, b) {act="relu"}

backward:
dz = relu_grad(out, dout)
dx, dw, db = conv2d_grad(x, w, _, dz)
)");
}

const std::string kMatmulVars = R"(program
data x : f32[-1,5,4]
param w : f32[4,3]
param b : f32[3]
param five : f32[5]
)";

TEST(FuseBiasAct, MatmulAndBias) {
  expect_rewrite(fuse_bias_act, kMatmulVars + R"(var y : f32[-1,5,3]
var z : f32[-1,5,3]
var out : f32[-1,5,3]

forward:
y = matmul(x, w)
z = elementwise_add(y, b)
out = relu(z)
)",
                 kMatmulVars + R"(var out : f32[-1,5,3]

forward:
out = fc(x, w, b) {act="relu", num_flatten_dims=2}
)");
}

TEST(FuseBiasAct, NotEveryMatmulIsALayer) {
  const std::string vars = kMatmulVars + "var y : f32[-1,5,3]\nvar z : f32[-1,5,3]\n\nforward:\n";
  expect_unchanged(fuse_bias_act,
                   vars + "y = matmul(x, w) {alpha=2.0}\nz = elementwise_add(y, b)\n");
  expect_unchanged(fuse_bias_act,
                   vars + "y = matmul(x, w)\nz = elementwise_add(y, five) {axis=1}\n");
  expect_unchanged(fuse_bias_act, vars + "y = matmul(x, w)\nz = elementwise_add(y, b)\n", {"y"});
  expect_unchanged(fuse_bias_act, vars + "y = matmul(x, w)\nz = elementwise_add(y, y)\n");
}

}  // namespace
}  // namespace fleetx::passes
