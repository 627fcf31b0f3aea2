#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

auto side_by_side(int axis) {
  return [axis](const Tensors& in) -> Tensors {
    std::vector<int64_t> dims = in[0].shape().dims();
    dims.insert(dims.begin() + axis, static_cast<int64_t>(in.size()));
    return {tabulate(Shape(dims), [&](Index i) {
      const auto which = static_cast<size_t>(i[static_cast<size_t>(axis)]);
      i.erase(i.begin() + axis);
      return at(in[which], i);
    })};
  };
}

auto taken_apart(int axis) {
  return [axis](const Tensors& in) -> Tensors {
    std::vector<int64_t> dims = in[0].shape().dims();
    dims.erase(dims.begin() + axis);
    Tensors out;
    for (int64_t n = 0; n < in[0].shape()[axis]; ++n)
      out.push_back(tabulate(Shape(dims), [&](Index i) {
        i.insert(i.begin() + axis, n);
        return at(in[0], i);
      }));
    return out;
  };
}

const AddCases stack("stack", [](Cases& c) {
  const Tensors xs = {random({2, 3}), random({2, 3}, 1), random({2, 3}, 2)};
  for (const int axis : {0, 1, 2})
    c.add({.label = "axis_" + std::to_string(axis),
           .inputs = {{"xs", xs}},
           .attrs = {{"axis", axis}},
           .reference = side_by_side(axis)});
  c.add({.label = "last",
         .inputs = {{"xs", xs}},
         .attrs = {{"axis", -1}},
         .unknown = {{"xs", 0}},
         .reference = side_by_side(2)});
});

const AddCases unstack("unstack", [](Cases& c) {
  for (const int axis : {0, 1, 2})
    c.add({.label = "axis_" + std::to_string(axis),
           .inputs = {{"x", random({3, 2, 4})}},
           .attrs = {{"axis", axis}},
           .outputs = {{"outs", axis == 0 ? 3 : 2 * axis}},
           .reference = taken_apart(axis)});
});

TEST(StackErrors, NameShapes) {
  expect_error(Error::Kind::kInvalidArgument, {"stack", "[2]", "[3]"}, [] {
    run_op("stack", {.inputs = {{"xs", Tensors{random({2}), random({3})}}}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"unstack", "3 entries", "2 outs"}, [] {
    run_op("unstack", {.inputs = {{"x", random({3})}}, .outputs = {{"outs", 2}}});
  });
}

}  // namespace
}  // namespace fleetx::testing
