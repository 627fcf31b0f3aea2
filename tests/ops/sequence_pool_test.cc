#include <cmath>

#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

auto pooled(std::string type, float pad) {
  return [=](const Tensors& in) -> Tensors {
    const auto offsets = in[1].data<int64_t>();
    return {
        tabulate({static_cast<int64_t>(offsets.size()) - 1, in[0].shape()[1]}, [&](const Index& i) {
          std::vector<float> values;
          for (int64_t row = offsets[static_cast<size_t>(i[0])];
               row < offsets[static_cast<size_t>(i[0]) + 1]; ++row)
            values.push_back(at(in[0], {row, i[1]}));
          if (values.empty()) return pad;
          float sum = 0;
          for (const float v : values) sum += v;
          const auto n = static_cast<float>(values.size());
          if (type == "sum") return sum;
          if (type == "mean") return sum / n;
          if (type == "sqrt") return sum / std::sqrt(n);
          if (type == "max") return *std::max_element(values.begin(), values.end());
          return type == "first" ? values.front() : values.back();
        })};
  };
}

const AddCases cases("sequence_pool", [](Cases& c) {
  for (const std::string type : {"sum", "mean", "sqrt", "max", "first", "last"}) {
    // With empty sequences, and rows at the end that belong to none.
    c.add({.label = type,
           .inputs = {{"x", random({9, 3})},
                      {"offsets", Tensor::of<int64_t>({6}, {0, 3, 3, 4, 8, 8})}},
           .attrs = {{"type", type}, {"pad_value", 0.25}},
           .unknown = {{"x", 0}, {"offsets", 0}},
           .reference = pooled(type, 0.25f),
           .epsilon = 1e-3});
    std::vector<int64_t> offsets = {0};
    for (int64_t b = 0; b < 40; ++b) offsets.push_back(offsets.back() + b % 7);
    c.add({.label = type + "_many",
           .inputs = {{"x", random({offsets.back(), 300})},
                      {"offsets", Tensor::of<int64_t>({41}, offsets)}},
           .attrs = {{"type", type}},
           .reference = pooled(type, 0.0f),
           .epsilon = 1e-4});
  }
  std::vector<int64_t> offsets = {0};
  for (int64_t b = 0; b < 4096; ++b) offsets.push_back(offsets.back() + 20 + b % 7);
  if (c.timed)
    c.add({.label = "perf_sum",
           .inputs = {{"x", random({offsets.back(), 16})},
                      {"offsets", Tensor::of<int64_t>({4097}, offsets)}},
           .perf = true});
});

TEST(SequencePool, IndexOfTheLargest) {
  const Tensors out =
      run_op("sequence_pool", {.inputs = {{"x", Tensor::of<float>({3, 2}, {1, 5, 2, 4, 0, 9})},
                                          {"offsets", Tensor::of<int64_t>({4}, {0, 2, 2, 3})}},
                               .attrs = {{"type", "max"}},
                               .outputs = {{"index", 1}}});
  expect_close(out[1], Tensor::of<int64_t>({3, 2}, {1, 0, -1, -1, 2, 2}), 0, "index");
}

TEST(SequencePoolErrors, NameTheSequence) {
  const auto bad = [](std::vector<int64_t> offsets, const char* type,
                      std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      const auto n = static_cast<int64_t>(offsets.size());
      run_op("sequence_pool",
             {.inputs = {{"x", random({5, 2})}, {"offsets", Tensor::of<int64_t>({n}, offsets)}},
              .attrs = {{"type", type}}});
    });
  };
  bad({0, 3, 2}, "sum", {"sequence_pool", "offsets", "sequence 1", "begins at 3", "ends at 2"});
  bad({1, 3}, "sum", {"first is 1"});
  bad({0, 6}, "sum", {"last is 6", "5 rows"});
  bad({0, 5}, "median", {"'median'"});
}

}  // namespace
}  // namespace fleetx::testing
