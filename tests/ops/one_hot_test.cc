#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

template <class T>
auto hot(int64_t depth) {
  return [depth](const Tensors& in) -> Tensors {
    Shape shape = in[0].shape();
    shape.push_back(depth);
    return {tabulate<T>(shape, [&](const Index& i) {
      return static_cast<T>(at<int64_t>(in[0], Index(i.begin(), i.end() - 1)) == i.back());
    })};
  };
}

const AddCases cases("one_hot", [](Cases& c) {
  c.add({.label = "labels",
         .inputs = {{"x", random_ints({6}, 0, 4)}},
         .attrs = {{"depth", 4}},
         .unknown = {{"x", 0}},
         .reference = hot<float>(4)});
  c.add({.label = "matrix_of_ints",
         .inputs = {{"x", random_ints({3, 2}, 0, 5)}},
         .attrs = {{"depth", 5}, {"dtype", "i32"}},
         .reference = hot<int32_t>(5)});
});

TEST(OneHotErrors, NameIdAndDepth) {
  expect_error(Error::Kind::kInvalidArgument, {"one_hot", "id 4", "[1]", "4 classes"}, [] {
    run_op("one_hot",
           {.inputs = {{"x", Tensor::of<int64_t>({2}, {0, 4})}}, .attrs = {{"depth", 4}}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"depth", "got 0"}, [] {
    run_op("one_hot", {.inputs = {{"x", random_ints({2}, 0, 1)}}, .attrs = {{"depth", 0}}});
  });
}

}  // namespace
}  // namespace fleetx::testing
