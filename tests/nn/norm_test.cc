#include "fleetx/nn/norm.h"

#include "tests/nn/net.h"

namespace fleetx::testing {
namespace {

TEST(BatchNorm, OwnsScaleBiasAndRunningStatistics) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 6, 5, 5});
  EXPECT_EQ(nn::batch_norm(x).shape(), (Shape{-1, 6, 5, 5}));
  EXPECT_EQ(net.parameter_names(), (ir::Names{"batch_norm_0.w_0", "batch_norm_0.b_0"}));
  for (const char* state : {"batch_norm_0.w_1", "batch_norm_0.w_2"}) {
    const ir::VarInfo& v = net.main.var(state);
    EXPECT_TRUE(v.persistable && !v.is_parameter && v.stop_gradient);
    EXPECT_EQ(v.type.shape, Shape{6});
  }
  EXPECT_EQ(net.init_of("batch_norm_0.w_0").attr<double>("value"), 1.0);
  EXPECT_EQ(net.init_of("batch_norm_0.w_1").attr<double>("value"), 0.0);
  EXPECT_EQ(net.init_of("batch_norm_0.w_2").attr<double>("value"), 1.0);
}

TEST(BatchNorm, UpdatesItsStatisticsInPlace) {
  Net net;
  nn::batch_norm(net.b.data("x", f32, {-1, 6}), {.mean_name = "m", .variance_name = "v"});
  EXPECT_EQ(net.last().out("mean_out"), ir::Names{"m"});
  EXPECT_EQ(net.last().out("variance_out"), ir::Names{"v"});
}

TEST(BatchNorm, ActivationFollows) {
  Net net;
  nn::batch_norm(net.b.data("x", f32, {-1, 6}), {.act = "relu", .name = "bn"});
  EXPECT_EQ(net.last().type(), "relu");
  EXPECT_EQ(net.last().name, "bn");
}

TEST(LayerNorm, NormalizesTheLastDimensions) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 4, 6});
  EXPECT_EQ(nn::layer_norm(x).shape(), (Shape{-1, 4, 6}));
  EXPECT_EQ(net.main.var("layer_norm_0.w_0").type.shape, Shape{24});
  nn::layer_norm(x, {.begin_norm_axis = -1});
  EXPECT_EQ(net.main.var("layer_norm_1.b_0").type.shape, Shape{6});
  nn::layer_norm(x, {.scale = false, .bias = false});
  EXPECT_EQ(net.parameter_names().size(), 4u);
}

TEST(LayerNorm, ErrorsNameTheUsersLine) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, -1, 6});
  const std::string message = error_of([&] { nn::layer_norm(x); });
  EXPECT_TRUE(contains(message, line_of(__LINE__ - 1)));
  EXPECT_TRUE(contains(message, "must be known"));
  EXPECT_TRUE(contains(error_of([&] { nn::layer_norm(x, {.begin_norm_axis = 3}); }),
                       "begin_norm_axis must be in [1,2]"));
}

}  // namespace
}  // namespace fleetx::testing
