#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

const AddCases cases("scale", [](Cases& c) {
  c.add({.label = "factor",
         .inputs = {{"x", random({3, 5})}},
         .attrs = {{"scale", 2.5}},
         .reference = [](const Tensors& in) -> Tensors {
           return {map(in[0], [](float x) { return 2.5f * x; })};
         }});
  c.add({.label = "bias_before",
         .inputs = {{"x", random({2, 3, 4})}},
         .attrs = {{"scale", -2.0}, {"bias", 0.5}, {"bias_after_scale", false}},
         .reference = [](const Tensors& in) -> Tensors {
           return {map(in[0], [](float x) { return -2.0f * (x + 0.5f); })};
         }});
  c.add({.label = "ints",
         .inputs = {{"x", random_ints({7}, -5, 5)}},
         .attrs = {{"scale", 3}, {"bias", 1}},
         .reference = [](const Tensors& in) -> Tensors {
           Tensor out = in[0].clone();
           for (int64_t& v : out.data<int64_t>()) v = 3 * v + 1;
           return {out};
         },
         .gradient = false});
});

}  // namespace
}  // namespace fleetx::testing
