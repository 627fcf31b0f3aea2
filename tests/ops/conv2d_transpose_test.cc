#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

struct Transpose {
  Shape x, w;
  ir::Ints stride{1, 1}, padding{0, 0, 0, 0}, dilation{1, 1}, output_padding{0, 0};
  int64_t groups = 1;
  bool bias = false;
};

Tensor reference(const Transpose& c, const Tensors& in) {
  const Shape &x = c.x, &w = c.w;
  const auto out_size = [&](int i) {
    const auto d = static_cast<size_t>(i);
    return (x[2 + i] - 1) * c.stride[d] - c.padding[2 * d] - c.padding[2 * d + 1] +
           c.dilation[d] * (w[2 + i] - 1) + 1 + c.output_padding[d];
  };
  const Shape shape{x[0], w[1] * c.groups, out_size(0), out_size(1)};
  std::vector<double> sums(static_cast<size_t>(shape.numel()), 0.0);
  const auto xs = in[0].data<float>(), ws = in[1].data<float>();
  for (int64_t n = 0; n < x[0]; ++n)
    for (int64_t ch = 0; ch < x[1]; ++ch)
      for (int64_t i = 0; i < x[2]; ++i)
        for (int64_t j = 0; j < x[3]; ++j)
          for (int64_t o = 0; o < w[1]; ++o)
            for (int64_t a = 0; a < w[2]; ++a)
              for (int64_t b = 0; b < w[3]; ++b) {
                const int64_t h = i * c.stride[0] + a * c.dilation[0] - c.padding[0];
                const int64_t v = j * c.stride[1] + b * c.dilation[1] - c.padding[2];
                if (h < 0 || h >= shape[2] || v < 0 || v >= shape[3]) continue;
                const int64_t to = ch / (x[1] / c.groups) * w[1] + o;
                sums[static_cast<size_t>(((n * shape[1] + to) * shape[2] + h) * shape[3] + v)] +=
                    static_cast<double>(
                        xs[static_cast<size_t>(((n * x[1] + ch) * x[2] + i) * x[3] + j)]) *
                    static_cast<double>(
                        ws[static_cast<size_t>(((ch * w[1] + o) * w[2] + a) * w[3] + b)]);
              }
  Tensor out(f32, shape);
  const int64_t plane = shape[2] * shape[3];
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / plane % shape[1]);
    const double bias = c.bias ? static_cast<double>(in[2].data<float>()[channel]) : 0.0;
    out.data<float>()[i] = static_cast<float>(sums[i] + bias);
  }
  return out;
}

OpCase make_case(const std::string& label, const Transpose& c) {
  OpCase out{.label = label, .inputs = {{"x", random(c.x, 1)}, {"w", random(c.w, 2)}}};
  if (c.bias) out.inputs.emplace_back("bias", random({c.w[1] * c.groups}, 3));
  out.attrs = {{"stride", c.stride},
               {"padding", c.padding},
               {"dilation", c.dilation},
               {"output_padding", c.output_padding},
               {"groups", c.groups}};
  out.reference = [c](const Tensors& in) -> Tensors { return {reference(c, in)}; };
  return out;
}

const AddCases cases("conv2d_transpose", [](Cases& c) {
  const OpCase whole = make_case("", {.x = {2, 20, 4, 4}, .w = {20, 5, 3, 3}, .bias = true});
  for (const std::string slot : {"x", "w", "bias"})
    c.add(only_gradients_of(whole, "only_d" + slot, {slot}));
  c.add(make_case("plain", {.x = {2, 4, 5, 5}, .w = {4, 6, 3, 3}}));
  c.add(
      make_case("bias", {.x = {2, 16, 4, 4}, .w = {16, 20, 2, 2}, .stride = {2, 2}, .bias = true}));
  c.add(make_case("up_two", {.x = {1, 32, 4, 5},
                             .w = {32, 16, 3, 3},
                             .stride = {2, 2},
                             .padding = {1, 1, 1, 1},
                             .output_padding = {1, 1},
                             .bias = true}));
  c.add(make_case("odd", {.x = {2, 5, 4, 3},
                          .w = {5, 7, 3, 2},
                          .stride = {3, 2},
                          .padding = {1, 0, 0, 1},
                          .output_padding = {2, 0},
                          .bias = true}));
  c.add(make_case(
      "dilation",
      {.x = {1, 8, 5, 5}, .w = {8, 8, 3, 3}, .padding = {1, 1, 2, 2}, .dilation = {2, 2}}));
  c.add(make_case("groups", {.x = {1, 32, 4, 4}, .w = {32, 16, 3, 3}, .groups = 2, .bias = true}));
  c.add(make_case("depthwise",
                  {.x = {1, 20, 4, 4}, .w = {20, 1, 3, 3}, .stride = {2, 2}, .groups = 20}));

  if (!c.timed) return;
  OpCase perf = make_case(
      "decoder.perf",
      {.x = {8, 256, 28, 28}, .w = {256, 128, 4, 4}, .stride = {2, 2}, .padding = {1, 1, 1, 1}});
  perf.perf = true;
  c.add(perf);
});

}  // namespace
}  // namespace fleetx::testing
