#include <cmath>

#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

Tensor reference(const Tensor& x, int axis, bool log) {
  const Shape& shape = x.shape();
  const int64_t n = shape[axis], inner = shape.numel(axis + 1, shape.rank());
  Tensor out(f32, shape);
  for (int64_t o = 0; o < shape.numel(0, axis); ++o)
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = [&](int64_t k) { return static_cast<size_t>((o * n + k) * inner + i); };
      double largest = -INFINITY, sum = 0;
      for (int64_t k = 0; k < n; ++k) largest = std::max<double>(largest, x.data<float>()[at(k)]);
      for (int64_t k = 0; k < n; ++k) sum += std::exp(x.data<float>()[at(k)] - largest);
      for (int64_t k = 0; k < n; ++k) {
        const double shifted = x.data<float>()[at(k)] - largest;
        out.data<float>()[at(k)] =
            static_cast<float>(log ? shifted - std::log(sum) : std::exp(shifted) / sum);
      }
    }
  return out;
}

void fill(Cases& c, bool log) {
  const auto add = [&](const std::string& label, const Tensor& x, int axis) {
    const int from = axis < 0 ? axis + x.shape().rank() : axis;
    c.add(
        {.label = label,
         .inputs = {{"x", x}},
         .attrs = {{"axis", axis}},
         .reference = [=](const Tensors& in) -> Tensors { return {reference(in[0], from, log)}; }});
  };
  add("last", random({4, 7}), -1);
  add("first", random({4, 7}), 0);
  add("middle", random({2, 5, 6}), 1);
  add("channels", random({2, 19, 3, 2}), 1);
  add("wide", random({3, 130}, 1, -4.0f, 4.0f), -1);
  add("one", random({5, 1}), 1);
  add("vector", random({9}), 0);
  // exp of these overflows or vanishes unless the largest is taken off first.
  add("large", Tensor::of<float>({2, 3}, {1000, 1001, 999.5f, -1000, -1001, -1000.25f}), -1);
  c.list.back().gradient = false;  // differences of f32 near 1000 are too rough
  add("masked", Tensor::of<float>({2, 3}, {0.5f, -10000, 1, -10000, 0.25f, -10000}), -1);
  c.list.back().gradient = false;  // so they are near -10000
  if (c.timed)
    c.add({.label = "bert.perf", .inputs = {{"x", random({8 * 12 * 128, 128})}}, .perf = true});
}

const AddCases softmax("softmax", [](Cases& c) { fill(c, false); });
const AddCases log_softmax("log_softmax", [](Cases& c) { fill(c, true); });

}  // namespace
}  // namespace fleetx::testing
