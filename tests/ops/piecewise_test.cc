#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

const AddCases cases("piecewise", [](Cases& c) {
  const std::pair<int64_t, float> points[] = {{0, 1.0f},  {9, 1.0f},  {10, 0.5f},
                                              {19, 0.5f}, {20, 0.1f}, {1000, 0.1f}};
  for (const auto& [step, value] : points)
    c.add({.label = "step_" + std::to_string(step),
           .inputs = {{"x", Tensor::scalar(step)}},
           .attrs = {{"boundaries", ir::Ints{10, 20}}, {"values", ir::Floats{1.0, 0.5, 0.1}}},
           .reference = [value = value](const Tensors&) -> Tensors {
             return {Tensor::scalar(value)};
           }});
  c.add({.label = "float_and_no_boundary",
         .inputs = {{"x", Tensor::scalar(3.5f)}},
         .attrs = {{"boundaries", ir::Floats{}}, {"values", ir::Floats{0.25}}},
         .reference = [](const Tensors&) -> Tensors { return {Tensor::scalar(0.25f)}; }});
});

TEST(Piecewise, RefusesATableThatDoesNotFit) {
  const auto run = [](const ir::Attrs& attrs) {
    run_op("piecewise",
           {.label = "", .inputs = {{"x", Tensor::scalar(int64_t{1})}}, .attrs = attrs});
  };
  expect_error(Error::Kind::kInvalidArgument, {"2 values and 2 boundaries"}, [&] {
    run({{"boundaries", ir::Ints{1, 2}}, {"values", ir::Floats{1.0, 0.5}}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"boundaries must ascend"}, [&] {
    run({{"boundaries", ir::Ints{2, 1}}, {"values", ir::Floats{1.0, 0.5, 0.1}}});
  });
}

}  // namespace
}  // namespace fleetx::testing
