#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

// out[i] = x[i mod the size of x], aligned at the last dimension: holds for expand and tile.
template <class T = float>
auto repeated(Shape shape) {
  return [shape](const Tensors& in) -> Tensors {
    const Shape& x = in[0].shape();
    return {tabulate<T>(shape, [&](const Index& i) {
      Index from(i.end() - x.rank(), i.end());
      for (int d = 0; d < x.rank(); ++d) from[static_cast<size_t>(d)] %= x[d];
      return at<T>(in[0], from);
    })};
  };
}

const AddCases expand("expand", [](Cases& c) {
  c.add({.label = "grow",
         .inputs = {{"x", random({3, 1, 2})}},
         .attrs = {{"shape", ir::Ints{3, 4, -1}}},
         .reference = repeated({3, 4, 2})});
  c.add({.label = "new_dimensions",
         .inputs = {{"x", random({1, 3})}},
         .attrs = {{"shape", ir::Ints{2, 2, -1}}},
         .reference = repeated({2, 2, 3})});
  c.add({.label = "last",
         .inputs = {{"x", random({5, 1})}},
         .attrs = {{"shape", ir::Ints{-1, 7}}},
         .unknown = {{"x", 0}},
         .reference = repeated({5, 7})});
  c.add({.label = "ints",
         .inputs = {{"x", random_ints({1, 3}, 0, 9)}},
         .attrs = {{"shape", ir::Ints{4, 3}}},
         .reference = repeated<int64_t>({4, 3}),
         .gradient = false});
});

const AddCases tile("tile", [](Cases& c) {
  c.add({.label = "both",
         .inputs = {{"x", random({2, 3})}},
         .attrs = {{"repeats", ir::Ints{3, 2}}},
         .reference = repeated({6, 6})});
  c.add({.label = "fewer_repeats",
         .inputs = {{"x", random({2, 3, 2})}},
         .attrs = {{"repeats", ir::Ints{2}}},
         .unknown = {{"x", 0}, {"x", 1}},
         .reference = repeated({2, 3, 4})});
  c.add({.label = "more_repeats",
         .inputs = {{"x", random({3})}},
         .attrs = {{"repeats", ir::Ints{2, 2, 2}}},
         .reference = repeated({2, 2, 6})});
  c.add({.label = "middle",
         .inputs = {{"x", random({2, 3, 1, 4})}},
         .attrs = {{"repeats", ir::Ints{1, 2, 3, 1}}},
         .reference = repeated({2, 6, 3, 4})});
  c.add({.label = "unknown_batch",
         .inputs = {{"x", random({2, 3})}},
         .attrs = {{"repeats", ir::Ints{3, 1}}},
         .unknown = {{"x", 0}},
         .reference = repeated({6, 3})});
});

TEST(ExpandErrors, NameTheAxis) {
  const auto bad = [](const char* op, ir::Attrs attrs,
                      std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      run_op(op, {.inputs = {{"x", random({2, 3})}}, .attrs = attrs});
    });
  };
  bad("expand", {{"shape", ir::Ints{4, 3}}}, {"expand", "[2,3]", "axis 0", "4"});
  bad("expand", {{"shape", ir::Ints{3}}}, {"fewer dimensions"});
  bad("expand", {{"shape", ir::Ints{-1, 2, 3}}}, {"new dimension 0"});
  bad("tile", {{"repeats", ir::Ints{0, 1}}}, {"positive"});
}

}  // namespace
}  // namespace fleetx::testing
