#include <gtest/gtest.h>

#include <array>

#include "fleetx/ir/builder.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

struct Conv {
  Shape x, w;
  ir::Ints stride{1, 1}, padding{0, 0, 0, 0}, dilation{1, 1};
  int64_t groups = 1;
  bool bias = false, relu = false;
};

Tensor reference(const Conv& c, const Tensors& in) {
  const Shape &x = c.x, &w = c.w;
  const auto out_size = [&](int i) {
    const auto d = static_cast<size_t>(i);
    const int64_t span = c.dilation[d] * (w[2 + i] - 1) + 1;
    return (x[2 + i] + c.padding[2 * d] + c.padding[2 * d + 1] - span) / c.stride[d] + 1;
  };
  Tensor out(f32, {x[0], w[0], out_size(0), out_size(1)});
  const auto xs = in[0].data<float>(), ws = in[1].data<float>(), ys = out.data<float>();
  size_t at = 0;
  for (int64_t n = 0; n < x[0]; ++n)
    for (int64_t o = 0; o < w[0]; ++o)
      for (int64_t i = 0; i < out.shape()[2]; ++i)
        for (int64_t j = 0; j < out.shape()[3]; ++j) {
          double sum = c.bias ? in[2].data<float>()[static_cast<size_t>(o)] : 0.0;
          const int64_t first = o / (w[0] / c.groups) * w[1];
          for (int64_t ch = 0; ch < w[1]; ++ch)
            for (int64_t a = 0; a < w[2]; ++a)
              for (int64_t b = 0; b < w[3]; ++b) {
                const int64_t h = i * c.stride[0] + a * c.dilation[0] - c.padding[0];
                const int64_t v = j * c.stride[1] + b * c.dilation[1] - c.padding[2];
                if (h < 0 || h >= x[2] || v < 0 || v >= x[3]) continue;
                const int64_t from = ((n * x[1] + first + ch) * x[2] + h) * x[3] + v;
                const int64_t with = ((o * w[1] + ch) * w[2] + a) * w[3] + b;
                sum += static_cast<double>(xs[static_cast<size_t>(from)]) *
                       static_cast<double>(ws[static_cast<size_t>(with)]);
              }
          ys[at++] = static_cast<float>(c.relu && sum < 0 ? 0.0 : sum);
        }
  return out;
}

OpCase make_case(const std::string& label, const Conv& c) {
  OpCase out{.label = label, .inputs = {{"x", random(c.x, 1)}, {"w", random(c.w, 2)}}};
  if (c.bias) out.inputs.emplace_back("bias", random({c.w[0]}, 3));
  out.attrs = {{"stride", c.stride},
               {"padding", c.padding},
               {"dilation", c.dilation},
               {"groups", c.groups},
               {"act", c.relu ? "relu" : ""}};
  out.reference = [c](const Tensors& in) -> Tensors { return {reference(c, in)}; };
  // relu bends where a sum is 0: a small step rarely crosses it, but sums in f32 are then rough.
  if (c.relu) {
    out.epsilon = 2e-3;
    out.grad_tolerance = 5e-2;
  }
  return out;
}

OpCase perf(const std::string& label, const Conv& c) {
  OpCase out = make_case(label, c);
  out.perf = true;
  return out;
}

const AddCases cases("conv2d", [](Cases& c) {
  const OpCase whole = make_case("", {.x = {2, 20, 6, 6}, .w = {35, 20, 3, 3}, .bias = true});
  for (const std::string slot : {"x", "w", "bias"})
    c.add(only_gradients_of(whole, "only_d" + slot, {slot}));
  c.add(make_case("one_by_one", {.x = {2, 16, 5, 5}, .w = {32, 16, 1, 1}}));
  c.add(
      make_case("one_by_one_tiles", {.x = {3, 128, 13, 14}, .w = {144, 128, 1, 1}, .bias = true}));
  c.add(
      make_case("one_by_one_stride", {.x = {2, 32, 7, 7}, .w = {64, 32, 1, 1}, .stride = {2, 2}}));
  c.add(make_case("three", {.x = {2, 16, 7, 7}, .w = {16, 16, 3, 3}, .padding = {1, 1, 1, 1}}));
  c.add(make_case(
      "first_layer",
      {.x = {1, 3, 16, 16}, .w = {32, 3, 7, 7}, .stride = {2, 2}, .padding = {3, 3, 3, 3}}));
  c.add(make_case("odd_channels", {.x = {2, 5, 6, 7}, .w = {7, 5, 3, 3}, .bias = true}));
  c.add(
      make_case("odd_blocked",
                {.x = {2, 20, 6, 6}, .w = {35, 20, 3, 3}, .padding = {1, 1, 1, 1}, .bias = true}));
  c.add(make_case("one_channel", {.x = {2, 1, 8, 8}, .w = {6, 1, 5, 5}, .bias = true}));
  c.add(make_case("one_output", {.x = {2, 16, 4, 4}, .w = {1, 16, 3, 3}, .bias = true}));
  c.add(make_case("stride", {.x = {1, 8, 9, 11}, .w = {8, 8, 3, 3}, .stride = {2, 3}}));
  c.add(make_case("asymmetric", {.x = {1, 8, 6, 6}, .w = {16, 8, 3, 2}, .padding = {0, 2, 1, 0}}));
  c.add(make_case(
      "dilation",
      {.x = {1, 16, 9, 9}, .w = {16, 16, 3, 3}, .padding = {2, 2, 1, 3}, .dilation = {2, 3}}));
  c.add(make_case("groups", {.x = {2, 32, 5, 5},
                             .w = {32, 16, 3, 3},
                             .padding = {1, 1, 1, 1},
                             .groups = 2,
                             .bias = true}));
  c.add(make_case("groups_odd", {.x = {2, 12, 5, 5}, .w = {9, 4, 3, 3}, .groups = 3}));
  c.add(make_case("depthwise", {.x = {2, 32, 6, 6},
                                .w = {32, 1, 3, 3},
                                .padding = {1, 1, 1, 1},
                                .groups = 32,
                                .bias = true}));
  c.add(make_case("depthwise_odd", {.x = {2, 19, 6, 6},
                                    .w = {19, 1, 3, 3},
                                    .stride = {2, 2},
                                    .padding = {1, 1, 1, 1},
                                    .groups = 19}));
  c.add(make_case("depthwise_two_each",
                  {.x = {1, 8, 6, 6}, .w = {16, 1, 3, 3}, .groups = 8, .bias = true}));
  c.add(make_case("relu", {.x = {2, 16, 5, 5},
                           .w = {20, 16, 3, 3},
                           .padding = {1, 1, 1, 1},
                           .bias = true,
                           .relu = true}));
  c.add(make_case("relu_odd", {.x = {1, 3, 6, 6}, .w = {5, 3, 3, 3}, .relu = true}));

  if (c.timed)
    c.add(perf(
        "resnet_conv1.perf",
        {.x = {16, 3, 224, 224}, .w = {64, 3, 7, 7}, .stride = {2, 2}, .padding = {3, 3, 3, 3}}));
  if (c.timed)
    c.add(perf("resnet_56x56.perf",
               {.x = {16, 64, 56, 56}, .w = {64, 64, 3, 3}, .padding = {1, 1, 1, 1}}));
  if (c.timed)
    c.add(perf("resnet_14x14.perf",
               {.x = {16, 256, 14, 14}, .w = {256, 256, 3, 3}, .padding = {1, 1, 1, 1}}));
  for (const auto& [in, out, side] : {std::array<int64_t, 3>{64, 64, 56},
                                      {64, 256, 56},
                                      {256, 64, 56},
                                      {128, 512, 28},
                                      {512, 128, 28},
                                      {256, 1024, 14},
                                      {1024, 256, 14},
                                      {512, 2048, 7},
                                      {2048, 512, 7}})
    if (c.timed)
      c.add(perf(str("resnet_1x1_", in, "_", out, ".perf"),
                 {.x = {16, in, side, side}, .w = {out, in, 1, 1}}));
});

// What a wrong call says.
std::string error_of(const Shape& x, const Shape& w, const ir::Attrs& attrs) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  try {
    b.op("conv2d", {{"x", b.data("image", f32, x)}, {"w", b.data("kernel", f32, w)}}, attrs);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Conv2d, ErrorsNameWhatIsWrong) {
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(error_of({1, 3, 8, 8}, {4, 5, 3, 3}, {}), "x has 3 channels, w expects 5"));
  EXPECT_TRUE(has(error_of({1, 3, 8}, {4, 3, 3, 3}, {}), "x 'image' is f32[1,3,8]"));
  EXPECT_TRUE(has(error_of({1, 3, 2, 8}, {4, 3, 3, 3}, {}), "the kernel spans 3"));
  EXPECT_TRUE(
      has(error_of({1, 3, 8, 8}, {4, 3, 3, 3}, {{"padding", ir::Ints{1}}}), "padding has 1"));
  EXPECT_TRUE(
      has(error_of({1, 3, 8, 8}, {4, 3, 3, 3}, {{"stride", ir::Ints{0, 1}}}), "stride has a 0"));
  EXPECT_TRUE(has(error_of({1, 3, 8, 8}, {4, 1, 3, 3}, {{"groups", 3}}), "multiple of groups"));
  EXPECT_TRUE(has(error_of({1, 3, 8, 8}, {4, 3, 3, 3}, {{"act", "gelu"}}), "act is 'gelu'"));
  EXPECT_EQ(error_of({-1, 3, 8, 8}, {4, 3, 3, 3}, {}), "");
}

}  // namespace
}  // namespace fleetx::testing
