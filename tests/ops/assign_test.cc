#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

const AddCases cases("assign", [](Cases& c) {
  const auto same = [](const Tensors& in) -> Tensors { return {in[0]}; };
  c.add({.label = "floats", .inputs = {{"x", random({3, 5})}}, .reference = same});
  c.add({.label = "integers",
         .inputs = {{"x", random_ints({7}, -5, 5)}},
         .reference = same,
         .gradient = false});
  if (c.timed)
    c.add({.label = "perf", .inputs = {{"x", random({1 << 20})}}, .reference = same, .perf = true});
});

}  // namespace
}  // namespace fleetx::testing
