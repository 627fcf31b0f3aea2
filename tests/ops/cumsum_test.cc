#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

template <class T = float>
auto summed(int axis, bool exclusive, bool reverse) {
  return [=](const Tensors& in) -> Tensors {
    return {tabulate<T>(in[0].shape(), [&](Index i) {
      const int64_t here = i[static_cast<size_t>(axis)];
      T sum = 0;
      for (int64_t j = 0; j < in[0].shape()[axis]; ++j) {
        const bool before = reverse ? j > here : j < here;
        if (!before && (exclusive || j != here)) continue;
        i[static_cast<size_t>(axis)] = j;
        sum += at<T>(in[0], i);
      }
      return sum;
    })};
  };
}

const AddCases cases("cumsum", [](Cases& c) {
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true})
      for (const int axis : {0, 1, 2})
        c.add(
            {.label = str("axis_", axis, exclusive ? "_exclusive" : "", reverse ? "_reverse" : ""),
             .inputs = {{"x", random({3, 4, 2})}},
             .attrs = {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}},
             .unknown = {{"x", 0}},
             .reference = summed(axis, exclusive, reverse)});
  c.add({.label = "ints",
         .inputs = {{"x", random_ints({9}, -5, 5)}},
         .reference = summed<int64_t>(0, false, false),
         .gradient = false});
});

TEST(CumsumErrors, NameAxisAndType) {
  expect_error(Error::Kind::kInvalidArgument, {"cumsum", "[3]", "got 1"}, [] {
    run_op("cumsum", {.inputs = {{"x", random({3})}}, .attrs = {{"axis", 1}}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"cumsum", "u8"}, [] {
    run_op("cumsum", {.inputs = {{"x", Tensor(u8, {3})}}});
  });
}

}  // namespace
}  // namespace fleetx::testing
