#include "fleetx/passes/passes.h"
#include "tests/passes/texts.h"

namespace fleetx::passes {
namespace {

const std::string kConvVars = R"(program
data x : f32[-1,3,8,8]
data r : f32[-1,4,8,8]
param w : f32[4,3,3,3]
param s : f32[4]
param b : f32[4]
state m : f32[4]
state v : f32[4]
var out : f32[-1,4,8,8]
)";
const std::string kConv = R"(var y : f32[-1,4,8,8]
var sm : f32[4]
var si : f32[4]
var z : f32[-1,4,8,8]

forward:
y = conv2d(x, w, _) {padding=[1, 1]}
)";

TEST(FuseConvNorm, WithTheAdditionBehindIt) {
  expect_rewrite(fuse_conv_norm, kConvVars + kConv + R"(
z, m, v, sm, si = batch_norm(y, s, b, m, v) {is_test=true}
out = elementwise_add(r, z) {act="relu"}
)",
                 kConvVars + R"(
forward:
out = conv2d_norm(x, w, s, b, m, v, r) {padding=[1, 1], act="relu"}
)");
}

TEST(FuseConvNorm, Alone) {
  expect_rewrite(fuse_conv_norm, kConvVars + kConv + R"(
z, m, v, sm, si = batch_norm(y, s, b, m, v) {is_test=true, act="relu"}
out = elementwise_add(r, z)
)",
                 kConvVars + R"(var z : f32[-1,4,8,8]

forward:
z = conv2d_norm(x, w, s, b, m, v, _) {padding=[1, 1], act="relu"}
out = elementwise_add(r, z)
)");
}

TEST(FuseConvNorm, NotInTraining) {
  expect_unchanged(fuse_conv_norm, kConvVars + kConv + R"(
z, m, v, sm, si = batch_norm(y, s, b, m, v)
out = elementwise_add(r, z)
)");
}

TEST(FuseConvNorm, NotWhereTheConvolutionHasAnotherReader) {
  expect_unchanged(fuse_conv_norm, kConvVars + kConv + R"(
z, m, v, sm, si = batch_norm(y, s, b, m, v) {is_test=true}
out = elementwise_add(y, z)
)");
}

}  // namespace
}  // namespace fleetx::passes
