#include "fleetx/passes/passes.h"
#include "tests/passes/texts.h"

namespace fleetx::passes {
namespace {

const std::string kLoss = R"(program
data x : f32[-1,10]
data label : i64[-1,1]
data dl : f32[-1,1]
var p : f32[-1,10]
var l : f32[-1,1]
var dx : f32[-1,10]
var q : f32[-1,10]
)";
const std::string kBefore = kLoss + R"(var dp : f32[-1,10]

forward:
p = softmax(x)
l = cross_entropy(p, label) {name="loss", ignore_index=3}
q = scale(p)

backward:
dp = cross_entropy_grad(p, label, dl) {ignore_index=3}
)";

TEST(FuseSoftmaxCrossEntropy, ProbabilitiesStayAvailable) {
  expect_rewrite(fuse_softmax_cross_entropy, kBefore + "dx = softmax_grad(p, dp)\n", kLoss + R"(
forward:
l, p = softmax_cross_entropy(x, label) {name="loss", ignore_index=3}
q = scale(p)

backward:
dx = softmax_cross_entropy_grad(p, label, dl) {ignore_index=3}
)",
                 {"p"});
}

TEST(FuseSoftmaxCrossEntropy, ClassAxisAndSoftLabels) {
  const std::string vars = R"(program
data x : f32[-1,10,7]
data label : f32[-1,10,7]
var p : f32[-1,10,7]
var l : f32[-1,1,7]

forward:
)";
  expect_rewrite(
      fuse_softmax_cross_entropy,
      vars + "p = softmax(x) {axis=1}\nl = cross_entropy(p, label) {axis=-2, soft_label=true}\n",
      vars + "l, p = softmax_cross_entropy(x, label) {axis=-2, soft_label=true}\n");
  expect_unchanged(fuse_softmax_cross_entropy, vars + R"(p = softmax(x) {axis=2}
l = cross_entropy(p, label) {axis=1, soft_label=true}
)");
}

TEST(FuseSoftmaxCrossEntropy, BackwardStaysWhereOtherGradientsAreAdded) {
  const std::string after = R"(
forward:
l, p = softmax_cross_entropy(x, label) {name="loss", ignore_index=3}
q = scale(p)

backward:
dp = cross_entropy_grad(p, label, dl) {ignore_index=3}
)";
  const std::string rest = "dq = elementwise_add(dp, q)\ndx = softmax_grad(p, dq)\n";
  const std::string vars = kLoss + "var dp : f32[-1,10]\nvar dq : f32[-1,10]\n";
  expect_rewrite(fuse_softmax_cross_entropy,
                 vars + kBefore.substr(kBefore.find("\nforward")) + rest, vars + after + rest);
}

// A label that is computed after softmax: the fused op stands later, unless someone reads p before.
TEST(FuseSoftmaxCrossEntropy, PlaceDependsOnTheLabel) {
  const std::string vars = R"(program
data x : f32[-1,10]
data raw : f32[-1,10]
var p : f32[-1,10]
var label : f32[-1,10]
var q : f32[-1,10]
var l : f32[-1,1]

forward:
)";
  expect_rewrite(fuse_softmax_cross_entropy, vars + R"(p = softmax(x)
label = scale(raw) {scale=0.5}
l = cross_entropy(p, label) {soft_label=true}
q = scale(p)
)",
                 vars + R"(label = scale(raw) {scale=0.5}
l, p = softmax_cross_entropy(x, label) {soft_label=true}
q = scale(p)
)");
  expect_unchanged(fuse_softmax_cross_entropy, vars + R"(p = softmax(x)
label = scale(raw) {scale=0.5}
q = scale(p)
l = cross_entropy(p, label) {soft_label=true}
)");
}

}  // namespace
}  // namespace fleetx::passes
