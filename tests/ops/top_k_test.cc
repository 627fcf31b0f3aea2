#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

// Picks the best entry that is left, k times.
auto best(int64_t k, int axis, bool largest) {
  return [=](const Tensors& in) -> Tensors {
    Shape shape = in[0].shape();
    const int64_t n = shape[axis];
    shape[axis] = k;
    Tensor values(f32, shape);
    const Tensor indices = tabulate<int64_t>(shape, [&](const Index& out) {
      Index i = out;
      std::vector<bool> gone(static_cast<size_t>(n));
      int64_t place = -1;
      for (int64_t round = 0; round <= out[static_cast<size_t>(axis)]; ++round) {
        place = -1;
        float found = 0;
        for (int64_t j = 0; j < n; ++j) {
          i[static_cast<size_t>(axis)] = j;
          const float value = at(in[0], i);
          if (gone[static_cast<size_t>(j)]) continue;
          if (place >= 0 && !(largest ? value > found : value < found)) continue;
          place = j;
          found = value;
        }
        gone[static_cast<size_t>(place)] = true;
      }
      i[static_cast<size_t>(axis)] = place;
      at(values, out) = at(in[0], i);
      return place;
    });
    return {values, indices};
  };
}

const AddCases top_k("top_k", [](Cases& c) {
  const auto add = [&](const std::string& label, Shape shape, int k, int axis, bool largest) {
    c.add({.label = label,
           .inputs = {{"x", random(shape)}},
           .attrs = {{"k", k}, {"axis", axis}, {"largest", largest}},
           .reference = best(k, axis < 0 ? axis + shape.rank() : axis, largest),
           .epsilon = 1e-4});
  };
  add("largest", {4, 7}, 3, -1, true);
  add("smallest", {4, 7}, 2, 1, false);
  add("columns", {9, 2, 3}, 4, 0, true);
  add("few_of_many", {3, 100}, 5, -1, true);
  add("all", {2, 5}, 5, -1, true);
  c.add({.label = "unknown_length",
         .inputs = {{"x", random({6, 3})}},
         .attrs = {{"k", 2}, {"axis", 0}},
         .unknown = {{"x", 0}},
         .reference = best(2, 0, true),
         .epsilon = 1e-4});
  // Equal entries: not differentiable there.
  c.add({.label = "equal",
         .inputs = {{"x", Tensor::of<float>({6}, {1, 2, 2, 0, 2, 1})}},
         .attrs = {{"k", 4}},
         .reference = best(4, 0, true),
         .gradient = false});
  if (c.timed)
    c.add({.label = "perf_classes",
           .inputs = {{"x", random({256, 1000})}},
           .attrs = {{"k", 5}},
           .perf = true});
});

const AddCases argsort("argsort", [](Cases& c) {
  c.add({.label = "ascending",
         .inputs = {{"x", random({3, 8})}},
         .reference = best(8, 1, false),
         .epsilon = 1e-4});
  c.add({.label = "descending_columns",
         .inputs = {{"x", random({8, 2})}},
         .attrs = {{"axis", 0}, {"descending", true}},
         .unknown = {{"x", 0}},
         .reference = best(8, 0, true),
         .epsilon = 1e-4});
});

TEST(TopK, NanIsLargest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const OpInput x("x", Tensor::of<float>({6}, {1, nan, 3, -nan, nan, 2}));
  const auto indices = [&](const char* op, ir::Attrs attrs) {
    return run_op(op, {.inputs = {x}, .attrs = attrs})[1];
  };
  expect_close(indices("top_k", {{"k", 4}}), Tensor::of<int64_t>({4}, {1, 3, 4, 2}), 0, "top_k");
  expect_close(indices("argsort", {}), Tensor::of<int64_t>({6}, {0, 5, 2, 1, 3, 4}), 0, "argsort");
}

TEST(TopK, Integers) {
  const Tensors out = run_op("top_k", {.inputs = {{"x", Tensor::of<int64_t>({4}, {4, 9, 1, 9})}},
                                       .attrs = {{"k", 2}, {"largest", false}}});
  expect_close(out[0], Tensor::of<int64_t>({2}, {1, 4}), 0, "out");
  expect_close(out[1], Tensor::of<int64_t>({2}, {2, 0}), 0, "indices");
}

TEST(TopKErrors, NameTheAxis) {
  expect_error(Error::Kind::kInvalidArgument, {"top_k", "[2,3]", "[1, 3]", "axis 1", "got 4"}, [] {
    run_op("top_k", {.inputs = {{"x", random({2, 3})}}, .attrs = {{"k", 4}}});
  });
}

}  // namespace
}  // namespace fleetx::testing
