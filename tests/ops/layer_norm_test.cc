#include <cmath>

#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

Tensors reference(const Tensors& in, int axis, double epsilon, bool scale, bool bias) {
  const Shape& x = in[0].shape();
  const int64_t rows = x.numel(0, axis), columns = x.numel(axis, x.rank());
  const Shape leading(std::vector<int64_t>(x.begin(), x.begin() + axis));
  Tensors out{Tensor(f32, x), Tensor(f32, leading), Tensor(f32, leading)};
  for (int64_t r = 0; r < rows; ++r) {
    const auto at = [&](int64_t i) { return static_cast<size_t>(r * columns + i); };
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < columns; ++i) mean += in[0].data<float>()[at(i)];
    mean /= static_cast<double>(columns);
    for (int64_t i = 0; i < columns; ++i)
      variance += std::pow(in[0].data<float>()[at(i)] - mean, 2);
    const double inv_std = 1.0 / std::sqrt(variance / static_cast<double>(columns) + epsilon);
    for (int64_t i = 0; i < columns; ++i) {
      double y = (in[0].data<float>()[at(i)] - mean) * inv_std;
      if (scale) y *= in[1].data<float>()[static_cast<size_t>(i)];
      if (bias) y += in[scale ? 2 : 1].data<float>()[static_cast<size_t>(i)];
      out[0].data<float>()[at(i)] = static_cast<float>(y);
    }
    out[1].data<float>()[static_cast<size_t>(r)] = static_cast<float>(mean);
    out[2].data<float>()[static_cast<size_t>(r)] = static_cast<float>(inv_std);
  }
  return out;
}

OpCase make_case(const std::string& label, const Shape& x, int axis, bool scale, bool bias,
                 double epsilon = 1e-5) {
  const Shape columns{x.numel(axis < 0 ? axis + x.rank() : axis, x.rank())};
  OpCase out{.label = label, .inputs = {{"x", random(x, 1, -1.0f, 2.0f)}}};
  if (scale) out.inputs.emplace_back("scale", random(columns, 2, 0.5f, 1.5f));
  if (bias) out.inputs.emplace_back("bias", random(columns, 3));
  out.attrs = {{"begin_norm_axis", axis}, {"epsilon", epsilon}};
  out.constants = {"mean", "inv_std"};
  const int from = axis < 0 ? axis + x.rank() : axis;
  out.reference = [=](const Tensors& in) { return reference(in, from, epsilon, scale, bias); };
  return out;
}

const AddCases cases("layer_norm", [](Cases& c) {
  const OpCase whole = make_case("", {4, 10}, 1, true, true);
  for (const std::string slot : {"x", "scale", "bias"})
    c.add(only_gradients_of(whole, "only_d" + slot, {slot}));
  c.add(make_case("both", {4, 10}, 1, true, true));
  c.add(make_case("no_bias", {4, 10}, 1, true, false));
  c.add(make_case("no_scale", {4, 10}, 1, false, true));
  c.add(make_case("neither", {4, 10}, 1, false, false));
  c.add(make_case("last_axis", {2, 3, 19}, 2, true, true));
  c.add(make_case("negative_axis", {2, 3, 19}, -1, true, true));
  c.add(make_case("many_axes", {3, 2, 4, 5}, 1, true, true, 1e-3));
  c.add(make_case("all_axes", {3, 7}, 0, true, true));
  c.add(make_case("many_rows", {150, 33}, 1, true, true));
  if (!c.timed) return;
  OpCase perf = make_case("bert.perf", {1024, 768}, 1, true, true);
  perf.perf = true;
  c.add(perf);
});

}  // namespace
}  // namespace fleetx::testing
