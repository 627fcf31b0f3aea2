#include <gtest/gtest.h>

#include "fleetx/base/threads.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

Tensor squared_norm(const Tensors& in) {
  double sum = 0;
  for (const Tensor& t : in)
    for (const float v : t.data<float>()) sum += static_cast<double>(v) * static_cast<double>(v);
  return Tensor::scalar(static_cast<float>(sum));
}

const AddCases cases("squared_l2_norm", [](Cases& c) {
  const auto add_input = [&](const std::string& label, const OpInput& xs) {
    c.add({.label = label, .inputs = {xs}, .reference = [](const Tensors& in) -> Tensors {
             return {squared_norm(in)};
           }});
  };
  const auto add = [&](const std::string& label, const Tensors& xs) {
    add_input(label, {"xs", xs});
  };
  add("one", {random({3, 5})});
  add("many", {random({70000}, 1), random({2, 3, 4}, 2), random({1}, 3), random({16384}, 4)});
  add_input("sparse", OpInput("xs").sparse(random_rows(6, {5, 3})));
  add_input("dense_and_sparse", OpInput("xs", random({7}))
                                    .sparse(random_rows(6, {5, 3}))
                                    .sparse(random_rows(3000, {200, 17})));
  if (c.timed) c.add({.label = "large", .inputs = {{"xs", Tensor(f32, {1 << 24})}}, .perf = true});
});

TEST(SquaredL2Norm, ThreadsDoNotChangeTheBits) {
  const int before = num_threads();
  const OpCase c{.label = "", .inputs = {{"xs", Tensors{random({300000}, 1), random({77}, 2)}}}};
  std::vector<float> got;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    got.push_back(run_op("squared_l2_norm", c)[0].item<float>());
  }
  set_num_threads(before);
  EXPECT_EQ(got[0], got[1]);
  EXPECT_EQ(got[0], got[2]);
}

}  // namespace
}  // namespace fleetx::testing
