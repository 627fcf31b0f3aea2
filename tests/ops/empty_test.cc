#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

// What is in it nobody knows, so that there is nothing to compare.
const AddCases cases("empty", [](Cases& c) {
  c.add({.label = "f32",
         .attrs = {{"shape", ir::Ints{4, 5}}},
         .reference = [](const Tensors&) -> Tensors { return {Tensor()}; }});
});

TEST(Empty, HasTheTypeThatIsAskedFor) {
  const Tensors out = run_op("empty", {.attrs = {{"shape", ir::Ints{2, 3}}, {"dtype", "i64"}}});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].dtype(), i64);
  EXPECT_EQ(out[0].shape(), Shape({2, 3}));
}

TEST(Empty, NeedsAWholeShape) {
  expect_error(Error::Kind::kInvalidArgument, {"empty", "[-1,3]"}, [] {
    run_op("empty", {.attrs = {{"shape", ir::Ints{-1, 3}}}});
  });
}

}  // namespace
}  // namespace fleetx::testing
