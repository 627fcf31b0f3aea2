#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

struct Cut {
  int axis;
  int64_t start, step, length;
};

template <class T = float>
auto part(std::vector<Cut> cuts) {
  return [cuts](const Tensors& in) -> Tensors {
    Shape shape = in[0].shape();
    for (const Cut& cut : cuts) shape[cut.axis] = cut.length;
    return {tabulate<T>(shape, [&](Index i) {
      for (const Cut& cut : cuts) {
        int64_t& place = i[static_cast<size_t>(cut.axis)];
        place = cut.start + place * cut.step;
      }
      return at<T>(in[0], i);
    })};
  };
}

ir::Attrs attrs(ir::Ints axes, ir::Ints starts, ir::Ints ends, ir::Ints steps = {}) {
  return {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}};
}

const AddCases cases("slice", [](Cases& c) {
  c.add({.label = "rows",
         .inputs = {{"x", random({6, 4})}},
         .attrs = attrs({0}, {1}, {4}),
         .reference = part({{0, 1, 1, 3}})});
  c.add({.label = "block",
         .inputs = {{"x", random({4, 5, 6})}},
         .attrs = attrs({1, -1}, {1, -4}, {-1, 1000}),
         .reference = part({{1, 1, 1, 3}, {2, 2, 1, 4}})});
  c.add({.label = "steps",
         .inputs = {{"x", random({7, 9})}},
         .attrs = attrs({0, 1}, {0, 1}, {7, 9}, {3, 2}),
         .reference = part({{0, 0, 3, 3}, {1, 1, 2, 4}})});
  c.add({.label = "backwards",
         .inputs = {{"x", random({5, 6})}},
         .attrs = attrs({0, 1}, {-1, 4}, {-1000, 0}, {-2, -1}),
         .reference = part({{0, 4, -2, 3}, {1, 4, -1, 4}})});
  c.add({.label = "first_token",
         .inputs = {{"x", random({3, 4, 8})}},
         .attrs = attrs({1}, {0}, {1}),
         .unknown = {{"x", 0}},
         .reference = part({{1, 0, 1, 1}})});
  // The sliced dimension itself is unknown: the gradient looks at x.
  c.add({.label = "unknown_length",
         .inputs = {{"x", random({5, 3})}},
         .attrs = attrs({0}, {1}, {-1}),
         .unknown = {{"x", 0}},
         .reference = part({{0, 1, 1, 3}})});
  c.add({.label = "ints",
         .inputs = {{"x", random_ints({4, 4}, 0, 99)}},
         .attrs = attrs({1}, {1}, {3}),
         .reference = part<int64_t>({{1, 1, 1, 2}}),
         .gradient = false});
  if (c.timed)
    c.add({.label = "perf_columns",
           .inputs = {{"x", random({4096, 2304})}},
           .attrs = attrs({1}, {768}, {1536}),
           .perf = true});
});

TEST(SliceErrors, SayWhatIsLeft) {
  const auto bad = [](ir::Attrs a, std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      run_op("slice", {.inputs = {{"x", random({4, 4})}}, .attrs = a});
    });
  };
  bad(attrs({0}, {2}, {2}), {"slice", "[4,4]", "nothing is left of axis 0"});
  bad(attrs({0, 1}, {0}, {1}), {"one entry per axis"});
  bad(attrs({0, -2}, {0, 0}, {1, 1}), {"axis 0 twice"});
  bad(attrs({0}, {0}, {1}, {0}), {"step is 0"});
  bad(attrs({2}, {0}, {1}), {"got 2"});
}

}  // namespace
}  // namespace fleetx::testing
