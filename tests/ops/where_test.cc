#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

Tensor condition(const Shape& shape) {
  const Tensor ints = random_ints(shape, 0, 2, 9);
  Tensor out(boolean, shape);
  for (size_t i = 0; i < ints.data<int64_t>().size(); ++i)
    out.data<bool>()[i] = ints.data<int64_t>()[i] == 1;
  return out;
}

template <class T>
Tensors select(const Tensors& in) {
  Tensor out = in[2].clone();
  for (size_t i = 0; i < in[0].data<bool>().size(); ++i)
    if (in[0].data<bool>()[i]) out.data<T>()[i] = in[1].data<T>()[i];
  return {out};
}

const AddCases cases("where", [](Cases& c) {
  c.add(
      {.label = "floats",
       .inputs = {{"cond", condition({3, 23})}, {"x", random({3, 23})}, {"y", random({3, 23}, 1)}},
       .reference = select<float>});
  c.add({.label = "only_y_differentiable",
         .inputs = {{"cond", condition({7})},
                    OpInput("x", random({7})).no_grad(),
                    {"y", random({7}, 1)}},
         .reference = select<float>});
  c.add({.label = "integers",
         .inputs = {{"cond", condition({9})},
                    {"x", random_ints({9}, 0, 9)},
                    {"y", random_ints({9}, -9, 0)}},
         .reference = select<int64_t>,
         .gradient = false});
  if (c.timed)
    c.add({.label = "perf",
           .inputs = {{"cond", condition({1 << 20})},
                      {"x", random({1 << 20})},
                      {"y", random({1 << 20}, 1)}},
           .reference = select<float>,
           .perf = true});
});

}  // namespace
}  // namespace fleetx::testing
