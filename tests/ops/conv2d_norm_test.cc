#include <cmath>

#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

struct Layer {
  Shape x, w;
  int64_t stride = 1, padding = 0;
  bool residual = false;
  std::string act = {};
};

Shape result_shape(const Layer& l) {
  const auto size = [&](int d) { return (l.x[d] + 2 * l.padding - l.w[d]) / l.stride + 1; };
  return {l.x[0], l.w[0], size(2), size(3)};
}

Tensor reference(const Layer& l, const Tensors& in) {
  const auto at = [&](size_t slot, int64_t i) {
    return static_cast<double>(in[slot].data<float>()[static_cast<size_t>(i)]);
  };
  Tensor out(f32, result_shape(l));
  const Shape& s = out.shape();
  for (int64_t i = 0; i < s.numel(); ++i) {
    const int64_t n = i / (s[1] * s[2] * s[3]), o = i / (s[2] * s[3]) % s[1];
    const int64_t row = i / s[3] % s[2] * l.stride - l.padding;
    const int64_t column = i % s[3] * l.stride - l.padding;
    double sum = 0;
    for (int64_t k = 0; k < l.w.numel(1, 4); ++k) {
      const int64_t c = k / (l.w[2] * l.w[3]);
      const int64_t y = row + k / l.w[3] % l.w[2], x = column + k % l.w[3];
      if (y < 0 || y >= l.x[2] || x < 0 || x >= l.x[3]) continue;
      sum += at(0, ((n * l.x[1] + c) * l.x[2] + y) * l.x[3] + x) * at(1, o * l.w.numel(1, 4) + k);
    }
    double y = (sum - at(4, o)) / std::sqrt(at(5, o) + 1e-5) * at(2, o) + at(3, o);
    if (l.residual) y += at(6, i);
    if (l.act == "relu" && y < 0) y = 0;
    out.data<float>()[static_cast<size_t>(i)] = static_cast<float>(y);
  }
  return out;
}

OpCase make_case(const std::string& label, const Layer& l) {
  const Shape channels{l.w[0]};
  OpCase c{.label = label,
           .inputs = {{"x", random(l.x, 1)},
                      {"w", random(l.w, 2)},
                      {"scale", random(channels, 3, 0.5f, 1.5f)},
                      {"bias", random(channels, 4)},
                      {"mean", random(channels, 5)},
                      {"variance", random(channels, 6, 0.5f, 2.0f)}},
           .attrs = {{"stride", ir::Ints{l.stride, l.stride}},
                     {"padding", ir::Ints{l.padding, l.padding}},
                     {"act", l.act}},
           .gradient = false};
  if (l.residual) c.inputs.emplace_back("residual", random(result_shape(l), 7));
  if (label.starts_with("winograd")) c.tolerance = 2e-4;  // sums of larger terms that cancel
  c.reference = [l](const Tensors& in) -> Tensors { return {reference(l, in)}; };
  return c;
}

const AddCases cases("conv2d_norm", [](Cases& c) {
  c.add(make_case("plain", {{2, 3, 5, 6}, {4, 3, 3, 3}}));
  c.add(make_case("relu", {{2, 16, 7, 7}, {32, 16, 1, 1}, 1, 0, false, "relu"}));
  c.add(make_case("residual", {{2, 16, 7, 7}, {32, 16, 1, 1}, 1, 0, true, "relu"}));
  c.add(make_case("tiles", {{3, 128, 13, 14}, {144, 128, 1, 1}, 1, 0, true, "relu"}));
  c.add(make_case("odd_channels", {{2, 7, 9, 8}, {19, 7, 3, 3}, 2, 1, true}));
  c.add(make_case("winograd", {{4, 32, 16, 17}, {40, 32, 3, 3}, 1, 1, false, "relu"}));
  c.add(make_case("winograd_residual", {{4, 32, 16, 17}, {40, 32, 3, 3}, 1, 1, true, "relu"}));
});

}  // namespace
}  // namespace fleetx::testing
