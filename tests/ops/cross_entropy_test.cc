#include <gtest/gtest.h>

#include "tests/ops/class_loss_case.h"

namespace fleetx::testing {
namespace {

const AddCases cases("cross_entropy", [](Cases& c) {
  add_class_loss_cases(
      c, [](Shape shape) { return random(shape, 1, 0.3f, 1.0f); },
      [](const Tensors& in, int axis, int64_t ignored) -> Tensors {
        return {entropy_of(in[0], in[1], axis, ignored)};
      });
});

TEST(CrossEntropy, AProbabilityOfZeroGivesAFiniteLoss) {
  const OpCase c{.label = "",
                 .inputs = {{"x", Tensor::of<float>({1, 2}, {0.0f, 1.0f})},
                            {"label", Tensor::of<int64_t>({1}, {0})}}};
  EXPECT_NEAR(run_op("cross_entropy", c)[0].item<float>(), 87.3f, 0.1f);
}

}  // namespace
}  // namespace fleetx::testing
