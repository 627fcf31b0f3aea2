#include "fleetx/passes/passes.h"
#include "tests/passes/texts.h"

namespace fleetx::passes {
namespace {

const std::string kStateVars = R"(program
param w : f32[4,3]
param b : f32[3]
param t : f32[100,2]
state vw : f32[4,3]
state vb : f32[3]
state vt : f32[100,2]
state lr : f32[1]
state lr2 : f32[1]
data dw : f32[4,3]
data db : f32[3]
data dt : sparse f32[100,2]
var out : f32[4,3]

)";

TEST(FuseOptimizer, OneSweep) {
  expect_rewrite(fuse_optimizer, kStateVars + R"(update:
[w], [vw] = momentum([w], [dw], [vw], lr, _) {mu=0.8, l2=[0.0001]}
out = scale(dw)
[b], [vb] = momentum([b], [db], [vb], lr, _) {mu=0.8, lr_factors=[2.0]}
)",
                 kStateVars + R"(update:
out = scale(dw)
[w, b], [vw, vb] = momentum([w, b], [dw, db], [vw, vb], lr, _) {mu=0.8, l2=[0.0001, 0.0], lr_factors=[1.0, 2.0]}
)");
}

TEST(FuseOptimizer, OnlyEqualOnes) {
  const std::string first = "update:\n[w], [vw] = momentum([w], [dw], [vw], lr, _)\n";
  expect_unchanged(fuse_optimizer,
                   kStateVars + first + "[b], [vb] = momentum([b], [db], [vb], lr, _) {mu=0.5}\n");
  expect_unchanged(fuse_optimizer,
                   kStateVars + first + "[b], [vb] = momentum([b], [db], [vb], lr2, _)\n");
  expect_unchanged(fuse_optimizer,
                   kStateVars + first + "[b], [vb] = momentum([b], [db], [vb], lr, lr2)\n");
  expect_unchanged(fuse_optimizer, kStateVars + first + "[b] = sgd([b], [db], lr, _)\n");
}

// w and then the sum that reads it keep their order; b does not move either, it is the last.
TEST(FuseOptimizer, NotPastAReader) {
  expect_unchanged(fuse_optimizer, kStateVars + R"(update:
[w], [vw] = momentum([w], [dw], [vw], lr, _)
out = scale(w)
[b], [vb] = momentum([b], [db], [vb], lr, _)
)");
  expect_unchanged(fuse_optimizer, kStateVars + R"(update:
[w], [vw] = momentum([w], [dw], [vw], lr, _)
lr = scale(lr) {scale=0.5}
[b], [vb] = momentum([b], [db], [vb], lr, _)
)");
}

TEST(FuseOptimizer, SparseGradientsStaySingle) {
  const std::string sparse = "[t], [vt] = momentum([t], [dt], [vt], lr, _)\n";
  expect_rewrite(fuse_optimizer, kStateVars + R"(update:
[w], [vw] = momentum([w], [dw], [vw], lr, _)
)" + sparse + R"([b], [vb] = momentum([b], [db], [vb], lr, _)
)",
                 kStateVars + "update:\n" + sparse +
                     R"([w, b], [vw, vb] = momentum([w, b], [dw, db], [vw, vb], lr, _)
)");
}

TEST(FuseOptimizer, NotTwoUpdatesOfOneParameter) {
  expect_unchanged(fuse_optimizer, kStateVars + R"(update:
[w], [vw] = momentum([w], [dw], [vw], lr, _)
[w], [vw] = momentum([w], [dw], [vw], lr, _)
)");
}

// Parameters of 4 MiB: what is ready first is updated first.
TEST(FuseOptimizer, SeveralSweepsOverALargeNetwork) {
  const std::string vars = R"(program
param a : f32[1024,1024]
param b : f32[1024]
param c : f32[1024,1024]
param d : f32[1024]
state lr : f32[1]
data x : f32[1024,1024]
data y : f32[1024]
var da : f32[1024,1024]
var db : f32[1024]
var dc : f32[1024,1024]
var dd : f32[1024]

backward:
dd = scale(y)
dc = scale(x)
db = scale(y) {scale=2.0}
da = scale(x) {scale=2.0}
update:
)";
  expect_rewrite(fuse_optimizer, vars + R"([a] = sgd([a], [da], lr, _)
[b] = sgd([b], [db], lr, _)
[c] = sgd([c], [dc], lr, _)
[d] = sgd([d], [dd], lr, _)
)",
                 vars + R"([a, b] = sgd([a, b], [da, db], lr, _)
[c, d] = sgd([c, d], [dc, dd], lr, _)
)");
}

}  // namespace
}  // namespace fleetx::passes
