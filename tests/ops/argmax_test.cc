#include <limits>

#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

template <class T = int64_t>
auto extreme(int axis, Shape shape, bool largest) {
  return [=](const Tensors& in) -> Tensors {
    // Out has the elements of x without the axis, in order, whatever its shape.
    std::vector<int64_t> dims = in[0].shape().dims();
    dims.erase(dims.begin() + axis);
    const Tensor out = tabulate<T>(Shape(dims), [&](Index i) {
      i.insert(i.begin() + axis, 0);
      T place = 0;
      float best = at(in[0], i);
      for (int64_t j = 1; j < in[0].shape()[axis]; ++j) {
        i[static_cast<size_t>(axis)] = j;
        const float value = at(in[0], i);
        if (largest ? value <= best : value >= best) continue;
        best = value;
        place = static_cast<T>(j);
      }
      return place;
    });
    return {out.reshaped(shape)};
  };
}

void add_cases(Cases& c, bool largest) {
  c.add({.label = "last",
         .inputs = {{"x", random({4, 9})}},
         .unknown = {{"x", 0}},
         .reference = extreme(1, {4}, largest)});
  c.add({.label = "first",
         .inputs = {{"x", random({9, 2, 3})}},
         .attrs = {{"axis", 0}},
         .reference = extreme(0, {2, 3}, largest)});
  c.add({.label = "keepdim_i32",
         .inputs = {{"x", random({2, 5, 3})}},
         .attrs = {{"axis", -2}, {"keepdim", true}, {"dtype", "i32"}},
         .reference = extreme<int32_t>(1, {2, 1, 3}, largest)});
  c.add({.label = "vector", .inputs = {{"x", random({7})}}, .reference = extreme(0, {1}, largest)});
  c.add({.label = "equal",
         .inputs = {{"x", Tensor::of<float>({2, 4}, {0, 3, 3, 0, 5, 5, 5, 5})}},
         .reference = extreme(1, {2}, largest)});
}

const AddCases argmax("argmax", [](Cases& c) { add_cases(c, true); });
const AddCases argmin("argmin", [](Cases& c) { add_cases(c, false); });

TEST(ArgMax, FirstNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const OpInput x("x", Tensor::of<float>({2, 4}, {1, nan, 9, nan, nan, 1, 2, 3}));
  for (const char* op : {"argmax", "argmin"})
    expect_close(run_op(op, {.inputs = {x}})[0], Tensor::of<int64_t>({2}, {1, 0}), 0, op);
}

TEST(ArgMax, Integers) {
  const OpInput x("x", Tensor::of<int32_t>({3}, {-5, 7, 2}));
  EXPECT_EQ(run_op("argmax", {.inputs = {x}})[0].item<int64_t>(), 1);
  EXPECT_EQ(run_op("argmin", {.inputs = {x}})[0].item<int64_t>(), 0);
}

TEST(ArgMaxErrors, NameAxisAndType) {
  expect_error(Error::Kind::kInvalidArgument, {"argmax", "[2,3]", "got 2"}, [] {
    run_op("argmax", {.inputs = {{"x", random({2, 3})}}, .attrs = {{"axis", 2}}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"dtype", "f32"}, [] {
    run_op("argmin", {.inputs = {{"x", random({2, 3})}}, .attrs = {{"dtype", "f32"}}});
  });
}

}  // namespace
}  // namespace fleetx::testing
