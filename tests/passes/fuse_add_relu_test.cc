#include "fleetx/passes/passes.h"
#include "tests/passes/texts.h"

namespace fleetx::passes {
namespace {

TEST(FuseAddRelu, TheEndOfAResidualBlock) {
  expect_rewrite(fuse_add_relu, R"(program
data a : f32[-1,8]
data b : f32[-1,8]
data dout : f32[-1,8]
var y : f32[-1,8]
var out : f32[-1,8]
var dy : f32[-1,8]

forward:
y = elementwise_add(a, b)
out = relu(y)

backward:
dy = relu_grad(out, dout)
)",
                 R"(program
data a : f32[-1,8]
data b : f32[-1,8]
data dout : f32[-1,8]
var out : f32[-1,8]
var dy : f32[-1,8]

forward:
out = elementwise_add(a, b) {act="relu"}

backward:
dy = relu_grad(out, dout)
)");
}

const std::string kAdd = R"(program
data a : f32[-1,8]
data b : f32[8]
data c : f32[-1,8]
state s : f32[-1,8]
var y : f32[-1,8]
var out : f32[-1,8]

forward:
)";

TEST(FuseAddRelu, NotWithBroadcasting) {
  expect_unchanged(fuse_add_relu, kAdd + "y = elementwise_add(a, b)\nout = relu(y)\n");
}

TEST(FuseAddRelu, NotWhereTheSumIsNeeded) {
  expect_unchanged(fuse_add_relu, kAdd + "y = elementwise_add(a, c)\nout = relu(y)\n", {"y"});
  expect_unchanged(
      fuse_add_relu,
      kAdd + "y = elementwise_add(a, c)\nout = relu(y)\nout = elementwise_add(out, y)\n");
}

// The write to state would move before the op that reads the old value.
TEST(FuseAddRelu, NotWhereTheResultIsState) {
  expect_unchanged(fuse_add_relu,
                   kAdd + "y = elementwise_add(a, c)\nout = scale(s)\ns = relu(y)\n");
}

}  // namespace
}  // namespace fleetx::passes
