// Classes of one rank; of several: tests/strategies/tensor_parallel_test.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/alone.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

const AddCases cases("softmax_cross_entropy_part", [](Cases& c) {
  c.add({.label = "alone",
         .inputs = {{"x", random({4, 5})}, {"label", Tensor::of<int64_t>({4, 1}, {0, 4, -100, 2})}},
         .attrs = {{"group", "alone"}, {"ranks", 1}},
         .constants = {"softmax"},
         .reference = [](const Tensors& in) -> Tensors {
           const auto total = [&](int64_t row) {
             double sum = 0;
             for (int64_t k = 0; k < 5; ++k)
               sum += std::exp(static_cast<double>(at(in[0], {row, k})));
             return sum;
           };
           return {tabulate({4, 1},
                            [&](const Index& i) {
                              const int64_t label = at<int64_t>(in[1], {i[0], 0});
                              return label < 0 ? 0.0f
                                               : static_cast<float>(std::log(total(i[0]))) -
                                                     at(in[0], {i[0], label});
                            }),
                   tabulate({4, 5}, [&](const Index& i) {
                     return static_cast<float>(std::exp(static_cast<double>(at(in[0], i))) /
                                               total(i[0]));
                   })};
         }});
});

}  // namespace
}  // namespace fleetx::testing
