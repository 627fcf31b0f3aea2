#include <gtest/gtest.h>

#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

const AddCases cases("print", [](Cases& c) {
  c.add({.label = "passes_through",
         .inputs = {{"x", random({2, 3})}},
         .attrs = {{"first_n", 0}},
         .reference = [](const Tensors& in) -> Tensors { return {in[0]}; }});
});

std::string printed(const Tensor& x, const ir::Attrs& attrs) {
  ::testing::internal::CaptureStdout();
  run_op("print", {.label = "", .inputs = {{"x", x}}, .attrs = attrs, .reference = {}});
  return ::testing::internal::GetCapturedStdout();
}

TEST(Print, ShowsNameTypeAndValues) {
  EXPECT_EQ(printed(Tensor::of<float>({2, 2}, {1, 2.5f, -3, 4}), {{"message", "loss is"}}),
            "loss is x0 f32[2,2]: 1 2.5 -3 4\n");
  EXPECT_EQ(printed(Tensor::of<int64_t>({3}, {1, 2, 3}), {{"summarize", 2}}),
            "x0 i64[3]: 1 2 ...\n");
  EXPECT_EQ(printed(Tensor::of<bool>({2}, {true, false}), {}), "x0 bool[2]: true false\n");
}

}  // namespace
}  // namespace fleetx::testing
