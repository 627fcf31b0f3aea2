#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

const AddCases cases("shape", [](Cases& c) {
  c.add({.label = "i64",
         .inputs = {{"x", random({3, 1, 4})}},
         .unknown = {{"x", 0}},
         .reference = [](const Tensors&) -> Tensors {
           return {Tensor::of<int64_t>({3}, {3, 1, 4})};
         }});
  c.add({.label = "i32",
         .inputs = {{"x", random_ints({7}, 0, 3)}},
         .attrs = {{"dtype", "i32"}},
         .reference = [](const Tensors&) -> Tensors { return {Tensor::of<int32_t>({1}, {7})}; }});
});

TEST(ShapeErrors, NameTheType) {
  expect_error(Error::Kind::kInvalidArgument, {"shape", "dtype", "f32"}, [] {
    run_op("shape", {.inputs = {{"x", random({3})}}, .attrs = {{"dtype", "f32"}}});
  });
}

}  // namespace
}  // namespace fleetx::testing
