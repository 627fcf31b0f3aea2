#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

// Walks from the padded place into x step by step, as one would on paper.
int64_t source(int64_t i, int64_t n, const std::string& mode) {
  while (mode == "reflect" && (i < 0 || i >= n)) i = i < 0 ? -i : 2 * (n - 1) - i;
  while (mode == "edge" && i < 0) ++i;
  while (mode == "edge" && i >= n) --i;
  return i >= 0 && i < n ? i : -1;
}

template <class T = float>
auto padded(ir::Ints paddings, std::string mode, T value) {
  return [=](const Tensors& in) -> Tensors {
    const Shape& x = in[0].shape();
    Shape shape = x;
    for (int d = 0; d < x.rank(); ++d)
      shape[d] += paddings[static_cast<size_t>(2 * d)] + paddings[static_cast<size_t>(2 * d + 1)];
    return {tabulate<T>(shape, [&](Index i) {
      for (size_t d = 0; d < i.size(); ++d) {
        i[d] = source(i[d] - paddings[2 * d], x[static_cast<int>(d)], mode);
        if (i[d] < 0) return value;
      }
      return at<T>(in[0], i);
    })};
  };
}

const AddCases cases("pad", [](Cases& c) {
  const auto add = [&](const std::string& label, Shape shape, ir::Ints paddings, std::string mode) {
    c.add({.label = mode + "_" + label,
           .inputs = {{"x", random(shape)}},
           .attrs = {{"paddings", paddings}, {"value", 2.5}, {"mode", mode}},
           .unknown = {{"x", 0}},
           .reference = padded<float>(paddings, mode, 2.5f)});
  };
  for (const char* mode : {"constant", "reflect", "edge"}) {
    add("images", {2, 2, 4, 5}, {0, 0, 0, 0, 2, 1, 1, 3}, mode);
    add("all", {3, 4}, {2, 1, 3, 2}, mode);
    add("front", {3, 4}, {2, 0, 0, 0}, mode);
    add("vector", {5}, {4, 4}, mode);
    add("nothing", {2, 3}, {0, 0, 0, 0}, mode);
  }
  c.add({.label = "ints",
         .inputs = {{"x", random_ints({3}, 0, 9)}},
         .attrs = {{"paddings", ir::Ints{1, 1}}, {"value", -7}},
         .reference = padded<int64_t>({1, 1}, "constant", -7),
         .gradient = false});
  if (c.timed)
    c.add({.label = "perf_images",
           .inputs = {{"x", random({16, 64, 56, 56})}},
           .attrs = {{"paddings", ir::Ints{0, 0, 0, 0, 1, 1, 1, 1}}},
           .perf = true});
});

TEST(PadErrors, NameThePaddings) {
  const auto bad = [](ir::Attrs attrs, std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      run_op("pad", {.inputs = {{"x", random({2, 3})}}, .attrs = attrs});
    });
  };
  bad({{"paddings", ir::Ints{1, 1}}}, {"pad", "[2,3]", "4 numbers", "[1,1]"});
  bad({{"paddings", ir::Ints{0, 0, -1, 0}}}, {"negative"});
  bad({{"paddings", ir::Ints{2, 0, 0, 0}}, {"mode", "reflect"}}, {"axis 0", "less than its size"});
  bad({{"paddings", ir::Ints{0, 0, 0, 0}}, {"mode", "wrap"}}, {"'wrap'"});
}

}  // namespace
}  // namespace fleetx::testing
