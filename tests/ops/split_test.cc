#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

template <class T = float>
auto cut(int axis, std::vector<int64_t> lengths) {
  return [=](const Tensors& in) -> Tensors {
    Tensors out;
    int64_t start = 0;
    for (const int64_t length : lengths) {
      Shape shape = in[0].shape();
      shape[axis] = length;
      out.push_back(tabulate<T>(shape, [&](Index i) {
        i[static_cast<size_t>(axis)] += start;
        return at<T>(in[0], i);
      }));
      start += length;
    }
    return out;
  };
}

const AddCases cases("split", [](Cases& c) {
  c.add({.label = "equal_parts",
         .inputs = {{"x", random({2, 6})}},
         .attrs = {{"num", 3}, {"axis", 1}},
         .outputs = {{"outs", 3}},
         .reference = cut(1, {2, 2, 2})});
  c.add({.label = "sections",
         .inputs = {{"x", random({5, 2, 3})}},
         .attrs = {{"sections", ir::Ints{1, -1, 2}}},
         .outputs = {{"outs", 3}},
         .reference = cut(0, {1, 2, 2})});
  c.add({.label = "middle",
         .inputs = {{"x", random({2, 3, 4})}},
         .attrs = {{"sections", ir::Ints{1, 2}}, {"axis", -2}},
         .outputs = {{"outs", 2}},
         .reference = cut(1, {1, 2})});
  c.add({.label = "ints",
         .inputs = {{"x", random_ints({4, 2}, 0, 50)}},
         .outputs = {{"outs", 2}},
         .reference = cut<int64_t>(0, {2, 2}),
         .gradient = false});
  c.add({.label = "unknown_batch",
         .inputs = {{"x", random({6, 4})}},
         .attrs = {{"num", 2}},
         .outputs = {{"outs", 2}},
         .unknown = {{"x", 0}},
         .reference = cut(0, {3, 3})});
  if (c.timed)
    c.add({.label = "perf_qkv",
           .inputs = {{"x", random({4096, 2304})}},
           .attrs = {{"num", 3}, {"axis", 1}},
           .outputs = {{"outs", 3}},
           .perf = true});
});

TEST(SplitErrors, NameTheSections) {
  const auto bad = [](ir::Attrs attrs, int outs, std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      run_op("split",
             {.inputs = {{"x", random({5, 2})}}, .attrs = attrs, .outputs = {{"outs", outs}}});
    });
  };
  bad({{"num", 2}}, 2, {"split", "[5,2]", "2 equal parts"});
  bad({{"num", 5}}, 2, {"num is 5", "2 outs"});
  bad({{"sections", ir::Ints{2, 2}}}, 2, {"[2,2]", "make up 5"});
  bad({{"sections", ir::Ints{-1, -1}}}, 2, {"at most one -1"});
  bad({{"sections", ir::Ints{5}}}, 2, {"1 sections", "2 outs"});
  bad({{"part", 2}}, 5, {"length 5", "5 parts of 2 make 10"});
  bad({{"micro_batches", true}}, 2,
      {"cannot be cut into 2 equal parts, the micro-batches of a pipeline",
       "feed a number of rows that 2 divides (4 or 6)", "accumulate_steps", "divides 5"});
  bad({{"micro_batches", true}}, 8, {"that 8 divides (8)"});
  bad({{"micro_batches", true}, {"part", 2}}, 5,
      {"5 parts of 2 make 10, which is accumulate_steps times micro_batch_size"});
}

}  // namespace
}  // namespace fleetx::testing
