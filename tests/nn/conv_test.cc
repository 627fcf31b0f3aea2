#include "fleetx/nn/conv.h"

#include <cmath>

#include "tests/nn/net.h"

namespace fleetx::testing {
namespace {

TEST(Conv2d, MakesWeightAndBias) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 3, 224, 224});
  const Var y = nn::conv2d(x, {.filters = 64, .kernel = 7, .stride = 2, .padding = 3});
  EXPECT_EQ(y.shape(), (Shape{-1, 64, 112, 112}));
  EXPECT_EQ(net.parameter_names(), (ir::Names{"conv2d_0.w_0", "conv2d_0.b_0"}));
  EXPECT_EQ(net.main.var("conv2d_0.w_0").type.shape, (Shape{64, 3, 7, 7}));
}

TEST(Conv2d, DefaultInitializerIsNormalWithVariance2ByFanIn) {
  Net net;
  nn::conv2d(net.b.data("x", f32, {-1, 8, 9, 9}), {.filters = 4, .kernel = {3, 5}});
  const ir::Op& w = net.init_of("conv2d_0.w_0");
  EXPECT_EQ(w.type(), "gaussian");
  EXPECT_NEAR(w.attr<double>("std"), std::sqrt(2.0 / (8 * 3 * 5)), 1e-12);
  EXPECT_EQ(w.attr<double>("mean"), 0.0);
}

TEST(Conv2d, GroupsDivideTheChannelsOfTheWeight) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 8, 9, 9});
  nn::conv2d(x, {.filters = 16, .kernel = 3, .groups = 8, .bias = false});
  EXPECT_EQ(net.main.var("conv2d_0.w_0").type.shape, (Shape{16, 1, 3, 3}));
  EXPECT_EQ(net.parameter_names().size(), 1u);
  EXPECT_TRUE(contains(error_of([&] { nn::conv2d(x, {.filters = 16, .groups = 3}); }),
                       "groups=3 must divide"));
}

TEST(Conv2d, SamePaddingKeepsTheSizeDividedByTheStride) {
  Net net;
  for (const int64_t size : {7, 8, 15}) {
    const Var x = net.b.data(str("x", size), f32, {-1, 3, size, 10});
    for (const int64_t kernel : {1, 2, 3, 5})
      for (const int64_t stride : {1, 2, 3})
        for (const int64_t dilation : {1, 2}) {
          const Var y = nn::conv2d(x, {.filters = 2,
                                       .kernel = kernel,
                                       .stride = stride,
                                       .padding = "SAME",
                                       .dilation = dilation});
          EXPECT_EQ(y.shape()[2], (size + stride - 1) / stride)
              << size << " " << kernel << " " << stride << " " << dilation;
          EXPECT_EQ(y.shape()[3], (10 + stride - 1) / stride);
        }
  }
}

TEST(Conv2d, OddRestOfSamePaddingGoesToBottomAndRight) {
  Net net;
  nn::conv2d(net.b.data("x", f32, {-1, 3, 8, 8}), {.filters = 2, .kernel = 2, .padding = "SAME"});
  EXPECT_EQ(net.last().attr<ir::Ints>("padding"), (ir::Ints{0, 1, 0, 1}));
}

TEST(Conv2d, PaddingInAllItsForms) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 3, 8, 8});
  const auto shape = [&](nn::Padding p) {
    return nn::conv2d(x, {.filters = 2, .kernel = 3, .padding = p}).shape();
  };
  EXPECT_EQ(shape("VALID"), (Shape{-1, 2, 6, 6}));
  EXPECT_EQ(shape(1), (Shape{-1, 2, 8, 8}));
  EXPECT_EQ(shape({0, 1}), (Shape{-1, 2, 6, 8}));
  EXPECT_EQ(shape({0, 1, 1, 2}), (Shape{-1, 2, 7, 9}));
}

TEST(Conv2d, ErrorsNameTheUsersLine) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 3, -1, 8});
  const Var flat = net.b.data("flat", f32, {-1, 3});
  const auto conv = [&](nn::Padding p) { nn::conv2d(x, {.filters = 2, .padding = p}); };
  const std::string line = line_of(__LINE__ - 1);
  EXPECT_TRUE(contains(error_of([&] { conv("SAME"); }), line));
  EXPECT_TRUE(contains(error_of([&] { conv("SAME"); }), "'x' of f32[-1,3,-1,8]"));
  EXPECT_TRUE(contains(error_of([&] { conv("HALF"); }), "padding 'HALF' is not known"));
  EXPECT_TRUE(contains(error_of([&] { nn::conv2d(flat, {.filters = 2}); }), "'flat' of f32[-1,3]"));
  EXPECT_TRUE(contains(error_of([&] { nn::conv2d(x, {}); }), "filters must be positive"));
}

TEST(Conv2dTranspose, DoublesTheImage) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 8, 7, 7});
  const Var y = nn::conv2d_transpose(x, {.filters = 4, .kernel = 4, .stride = 2, .padding = 1});
  EXPECT_EQ(y.shape(), (Shape{-1, 4, 14, 14}));
  EXPECT_EQ(net.main.var("conv2d_transpose_0.w_0").type.shape, (Shape{8, 4, 4, 4}));
  EXPECT_TRUE(contains(
      error_of([&] { nn::conv2d_transpose(x, {.filters = 4, .kernel = 4, .padding = "SAME"}); }),
      "SAME"));
}

}  // namespace
}  // namespace fleetx::testing
