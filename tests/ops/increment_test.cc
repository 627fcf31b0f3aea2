#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

const AddCases cases("increment", [](Cases& c) {
  c.add({.label = "counter",
         .inputs = {OpInput("x", Tensor::of<int64_t>({1}, {41})).state()},
         .updates = {{"out", "x"}},
         .reference = [](const Tensors&) -> Tensors { return {Tensor::of<int64_t>({1}, {42})}; }});
  c.add({.label = "by_value",
         .inputs = {{"x", random({5})}},
         .attrs = {{"value", -0.5}},
         .reference = [](const Tensors& in) -> Tensors {
           return {map(in[0], [](float x) { return x - 0.5f; })};
         }});
});

}  // namespace
}  // namespace fleetx::testing
