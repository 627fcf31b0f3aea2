#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

template <class T = float>
auto joined(int axis) {
  return [axis](const Tensors& in) -> Tensors {
    Shape shape = in[0].shape();
    for (size_t i = 1; i < in.size(); ++i) shape[axis] += in[i].shape()[axis];
    return {tabulate<T>(shape, [&](Index i) {
      size_t which = 0;
      for (auto& place = i[static_cast<size_t>(axis)]; place >= in[which].shape()[axis]; ++which)
        place -= in[which].shape()[axis];
      return at<T>(in[which], i);
    })};
  };
}

Tensors inputs(std::vector<Shape> shapes) {
  Tensors out;
  for (const Shape& shape : shapes) out.push_back(random(shape, out.size()));
  return out;
}

const AddCases cases("concat", [](Cases& c) {
  c.add({.label = "rows",
         .inputs = {{"xs", inputs({{2, 3}, {1, 3}, {4, 3}})}},
         .reference = joined(0)});
  c.add({.label = "columns",
         .inputs = {{"xs", inputs({{5, 3}, {5, 1}, {5, 2}})}},
         .attrs = {{"axis", -1}},
         .reference = joined(1)});
  c.add({.label = "middle",
         .inputs = {{"xs", inputs({{2, 3, 2, 2}, {2, 1, 2, 2}})}},
         .attrs = {{"axis", 1}},
         .reference = joined(1)});
  c.add({.label = "one", .inputs = {{"xs", inputs({{2, 3}})}}, .reference = joined(0)});
  // Rows long enough to be copied piece by piece.
  c.add({.label = "long_rows",
         .inputs = {{"xs", inputs({{3, 9000}, {3, 9001}})}},
         .attrs = {{"axis", 1}},
         .reference = joined(1)});
  c.add({.label = "ints",
         .inputs = {{"xs", Tensors{random_ints({2, 2}, 0, 9), random_ints({2, 3}, 0, 9, 1)}}},
         .attrs = {{"axis", 1}},
         .reference = joined<int64_t>(1),
         .gradient = false});
  c.add({.label = "unknown_batch",
         .inputs = {{"xs", inputs({{2, 3}, {2, 4}})}},
         .attrs = {{"axis", 1}},
         .unknown = {{"xs", 0}},
         .reference = joined(1)});
  // The lengths themselves are unknown: the gradient looks at xs.
  c.add({.label = "unknown_lengths",
         .inputs = {{"xs", inputs({{2, 3}, {5, 3}})}},
         .unknown = {{"xs", 0}},
         .reference = joined(0)});
  Tensors features;
  for (uint64_t i = 0; i < 26; ++i) features.push_back(random({4096, 16}, i));
  if (c.timed)
    c.add({.label = "perf_features",
           .inputs = {{"xs", features}},
           .attrs = {{"axis", 1}},
           .perf = true});
  if (c.timed)
    c.add({.label = "perf_channels",
           .inputs = {{"xs", inputs({{16, 64, 56, 56}, {16, 32, 56, 56}})}},
           .attrs = {{"axis", 1}},
           .perf = true});
});

TEST(ConcatErrors, NameBothInputs) {
  const auto bad = [](Tensors xs, int axis, std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      run_op("concat", {.inputs = {{"xs", xs}}, .attrs = {{"axis", axis}}});
    });
  };
  bad({random({2, 3}), random({2, 4})}, 0, {"concat", "[2,3]", "[2,4]", "axis 0"});
  bad({random({2, 3}), random({2, 3, 1})}, 0, {"[2,3,1]"});
  bad({random({2}), random_ints({2}, 0, 4)}, 0, {"i64"});
  bad({random({2})}, 1, {"axis", "got 1"});
}

}  // namespace
}  // namespace fleetx::testing
