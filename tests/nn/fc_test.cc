#include "fleetx/nn/fc.h"

#include "tests/nn/net.h"

namespace fleetx::testing {
namespace {

TEST(Fc, NamesItsParametersAndFlattens) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 3, 4});
  const Var y = nn::fc(x, {.size = 10});
  EXPECT_EQ(y.shape(), (Shape{-1, 10}));
  EXPECT_EQ(net.parameter_names(), (ir::Names{"fc_0.w_0", "fc_0.b_0"}));
  EXPECT_EQ(net.main.var("fc_0.w_0").type.shape, (Shape{12, 10}));
  EXPECT_EQ(net.last().name, "fc_0");
  nn::fc(y, {.size = 5});
  EXPECT_EQ(net.parameter_names().back(), "fc_1.b_0");
}

TEST(Fc, KeepsLeadingDimensions) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 3, 4});
  EXPECT_EQ(nn::fc(x, {.size = 10, .num_flatten_dims = 2}).shape(), (Shape{-1, 3, 10}));
  EXPECT_EQ(nn::fc(x, {.size = 10, .num_flatten_dims = -1}).shape(), (Shape{-1, 3, 10}));
}

TEST(Fc, DefaultInitializersAreXavierAndZero) {
  Net net;
  nn::fc(net.b.data("x", f32, {-1, 50}), {.size = 100});
  const ir::Op& w = net.init_of("fc_0.w_0");
  EXPECT_EQ(w.type(), "uniform");
  EXPECT_NEAR(w.attr<double>("high"), 0.2, 1e-12);  // sqrt(6 / 150)
  EXPECT_NEAR(w.attr<double>("low"), -0.2, 1e-12);
  EXPECT_EQ(net.init_of("fc_0.b_0").type(), "fill");
  EXPECT_EQ(net.init_of("fc_0.b_0").attr<double>("value"), 0.0);
}

TEST(Fc, ActivationIsAnOpOfTheSameLayer) {
  Net net;
  nn::fc(net.b.data("x", f32, {-1, 4}), {.size = 2, .act = "relu", .name = "head"});
  EXPECT_EQ(net.last().type(), "relu");
  EXPECT_EQ(net.last().name, "head");
  EXPECT_EQ(net.parameter_names(), (ir::Names{"head.w_0", "head.b_0"}));
}

TEST(Fc, ParamAttrReachesTheParameter) {
  Net net;
  nn::fc(net.b.data("x", f32, {-1, 4}), {.size = 2,
                                         .bias = false,
                                         .weight_attr = {.name = "mine",
                                                         .init = nn::init::constant(3),
                                                         .lr = 0.5,
                                                         .l2 = 0.01,
                                                         .trainable = false,
                                                         .need_clip = false}});
  EXPECT_EQ(net.parameter_names(), ir::Names{"mine"});
  const ir::VarInfo& w = net.main.var("mine");
  EXPECT_TRUE(w.stop_gradient);
  EXPECT_EQ(w.attrs, (ir::Attrs{{"lr", 0.5}, {"l2", 0.01}, {"need_clip", false}}));
  EXPECT_EQ(net.init_of("mine").attr<double>("value"), 3.0);
  EXPECT_FALSE(net.last().has_in("bias"));
}

TEST(Fc, OneNameSharesTheParameters) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 4});
  nn::fc(x, {.size = 4, .name = "shared"});
  nn::fc(x, {.size = 4, .name = "shared"});
  EXPECT_EQ(net.parameter_names().size(), 2u);
  EXPECT_TRUE(contains(error_of([&] { nn::fc(x, {.size = 5, .name = "shared"}); }), "shared.w_0"));
}

TEST(Fc, ErrorsNameTheUsersLine) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, -1});
  const Var flat = net.b.data("flat", f32, {-1});
  EXPECT_TRUE(contains(error_of([&] { nn::fc(x, {.size = 10}); }), line_of(__LINE__)));
  EXPECT_TRUE(contains(error_of([&] { nn::fc(x, {.size = 10}); }), "dimension 1 of x 'x'"));
  EXPECT_TRUE(contains(error_of([&] { nn::fc(x, {.size = 0}); }), "size must be positive"));
  EXPECT_TRUE(contains(error_of([&] { nn::fc(flat, {.size = 2}); }), "num_flatten_dims"));
}

TEST(Fc, UnknownActivationListsTheKnownOnes) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 4});
  const std::string message = error_of([&] { nn::fc(x, {.size = 2, .act = "rely"}); });
  EXPECT_TRUE(contains(message, "no activation 'rely'"));
  EXPECT_TRUE(contains(message, "relu, "));
  EXPECT_TRUE(contains(message, line_of(__LINE__ - 3)));
}

}  // namespace
}  // namespace fleetx::testing
