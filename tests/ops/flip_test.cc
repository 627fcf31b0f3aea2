#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

template <class T = float>
auto turned(std::vector<int> axes) {
  return [axes](const Tensors& in) -> Tensors {
    return {tabulate<T>(in[0].shape(), [&](Index i) {
      for (const int d : axes)
        i[static_cast<size_t>(d)] = in[0].shape()[d] - 1 - i[static_cast<size_t>(d)];
      return at<T>(in[0], i);
    })};
  };
}

const AddCases cases("flip", [](Cases& c) {
  c.add({.label = "rows",
         .inputs = {{"x", random({4, 5})}},
         .attrs = {{"axes", ir::Ints{0}}},
         .reference = turned({0})});
  c.add({.label = "last_two",
         .inputs = {{"x", random({2, 3, 4})}},
         .attrs = {{"axes", ir::Ints{-1, 1}}},
         .unknown = {{"x", 0}},
         .reference = turned({1, 2})});
  c.add({.label = "there_and_back",
         .inputs = {{"x", random({2, 3})}},
         .attrs = {{"axes", ir::Ints{1, 1}}},
         .reference = turned({})});
  c.add({.label = "ints",
         .inputs = {{"x", random_ints({9}, 0, 99)}},
         .attrs = {{"axes", ir::Ints{0}}},
         .reference = turned<int64_t>({0}),
         .gradient = false});
});

TEST(FlipErrors, NameTheAxis) {
  expect_error(Error::Kind::kInvalidArgument, {"flip", "[2]", "got 1"}, [] {
    run_op("flip", {.inputs = {{"x", random({2})}}, .attrs = {{"axes", ir::Ints{1}}}});
  });
}

}  // namespace
}  // namespace fleetx::testing
