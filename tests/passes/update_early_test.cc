#include "fleetx/passes/passes.h"
#include "tests/passes/texts.h"

namespace fleetx::passes {
namespace {

const std::string kTwoVars = R"(program
param w1 : f32[4,3]
param w2 : f32[4,3]
state lr : f32[1]
data x : f32[4,3]
var d1 : f32[4,3]
var d2 : f32[4,3]
var out : f32[4,3]

)";

TEST(UpdateEarly, RightBehindTheGradient) {
  expect_rewrite(update_early, kTwoVars + R"(backward:
d2 = scale(x)
d1 = scale(x) {scale=2.0}
update:
[w1] = sgd([w1], [d1], lr, _)
[w2] = sgd([w2], [d2], lr, _)
)",
                 kTwoVars + R"(backward:
d2 = scale(x)
update:
[w2] = sgd([w2], [d2], lr, _)
backward:
d1 = scale(x) {scale=2.0}
update:
[w1] = sgd([w1], [d1], lr, _)
)");
}

TEST(UpdateEarly, NotBeforeTheLastReaderOfTheOldValue) {
  expect_unchanged(update_early, kTwoVars + R"(backward:
d2 = scale(x)
d1 = elementwise_mul(x, w2)
update:
[w2] = sgd([w2], [d2], lr, _)
)");
}

TEST(UpdateEarly, NotBeforeItsLearningRate) {
  expect_unchanged(update_early, kTwoVars + R"(backward:
d2 = scale(x)
d1 = scale(x) {scale=2.0}
update:
lr = scale(lr) {scale=0.5}
[w2] = sgd([w2], [d2], lr, _)
)");
}

}  // namespace
}  // namespace fleetx::passes
