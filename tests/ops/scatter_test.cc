#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

auto scattered(bool overwrite) {
  return [overwrite](const Tensors& in) -> Tensors {
    const Tensor out = in[0].clone();
    const auto index = in[1].data<int64_t>();
    const auto width = static_cast<size_t>(out.numel() / out.shape()[0]);
    const auto to = out.data<float>(), updates = in[2].data<float>();
    for (size_t i = 0; i < index.size(); ++i)
      for (size_t j = 0; j < width; ++j) to[static_cast<size_t>(index[i]) * width + j] = 0;
    for (size_t i = 0; i < index.size(); ++i)
      for (size_t j = 0; j < width; ++j) {
        float& place = to[static_cast<size_t>(index[i]) * width + j];
        place = updates[i * width + j] + (overwrite ? 0.0f : place);
      }
    return {out};
  };
}

const AddCases cases("scatter", [](Cases& c) {
  for (const bool overwrite : {true, false}) {
    const std::string label = overwrite ? "overwrite" : "add";
    const auto add = [&](const std::string& name, Tensor x, Tensor index, Tensor updates) {
      c.add({.label = label + "_" + name,
             .inputs = {{"x", x}, {"index", index}, {"updates", updates}},
             .attrs = {{"overwrite", overwrite}},
             .reference = scattered(overwrite)});
    };
    add("rows", random({5, 3}), Tensor::of<int64_t>({2}, {4, 1}), random({2, 3}, 1));
    add("repeated", random({4, 2}), Tensor::of<int64_t>({5}, {1, 3, 1, 1, 3}), random({5, 2}, 1));
    add("vector", random({6}), Tensor::of<int64_t>({3}, {5, 0, 5}), random({3}, 1));
    add("many", random({30, 700}), random_ints({80}, 0, 30), random({80, 700}, 1));
  }
});

TEST(Scatter, IntegersAdd) {
  const Tensors out = run_op("scatter", {.inputs = {{"x", Tensor::of<int64_t>({3}, {7, 8, 9})},
                                                    {"index", Tensor::of<int32_t>({2}, {1, 1})},
                                                    {"updates", Tensor::of<int64_t>({2}, {3, 4})}},
                                         .attrs = {{"overwrite", false}}});
  expect_close(out[0], Tensor::of<int64_t>({3}, {7, 7, 9}), 0, "out");
}

TEST(ScatterErrors, NameIdAndShapes) {
  const auto bad = [](Tensor index, Tensor updates, std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      run_op("scatter",
             {.inputs = {{"x", random({5, 3})}, {"index", index}, {"updates", updates}}});
    });
  };
  bad(Tensor::of<int64_t>({2}, {0, 5}), random({2, 3}), {"scatter", "id 5", "[1]", "5 rows"});
  bad(Tensor::of<int64_t>({2}, {0, 1}), random({3, 3}), {"[3,3]", "one row of x per id"});
  bad(Tensor::of<int64_t>({2}, {0, 1}), random({2, 4}), {"[2,4]"});
}

}  // namespace
}  // namespace fleetx::testing
