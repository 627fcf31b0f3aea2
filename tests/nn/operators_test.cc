#include "fleetx/nn/operators.h"

#include "tests/nn/net.h"

namespace fleetx::testing {
namespace {

TEST(Operators, OnVariables) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 4}), y = net.b.data("y", f32, {4});
  EXPECT_EQ((x + y).shape(), x.shape());
  EXPECT_EQ(net.last().type(), "elementwise_add");
  EXPECT_EQ(net.last().loc.line, __LINE__ - 2);
  (void)(x - y);
  EXPECT_EQ(net.last().type(), "elementwise_sub");
  (void)(x * y);
  EXPECT_EQ(net.last().type(), "elementwise_mul");
  (void)(x / y);
  EXPECT_EQ(net.last().type(), "elementwise_div");
}

TEST(Operators, WithNumbers) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 4});
  const auto scale_and_bias = [&](const Var&) {
    return std::pair(net.last().attr<double>("scale"), net.last().attr<double>("bias"));
  };
  using P = std::pair<double, double>;
  EXPECT_EQ(scale_and_bias(x + 2), P(1, 2));
  EXPECT_EQ(scale_and_bias(2 + x), P(1, 2));
  EXPECT_EQ(scale_and_bias(x - 2), P(1, -2));
  EXPECT_EQ(scale_and_bias(2 - x), P(-1, 2));
  EXPECT_EQ(scale_and_bias(x * 2), P(2, 0));
  EXPECT_EQ(scale_and_bias(2 * x), P(2, 0));
  EXPECT_EQ(scale_and_bias(x / 2), P(0.5, 0));
  EXPECT_EQ(scale_and_bias(-x), P(-1, 0));
  EXPECT_EQ(scale_and_bias(3 / x), P(3, 0));
  EXPECT_EQ(std::prev(net.main.ops().end(), 2)->type(), "reciprocal");
}

TEST(Operators, ErrorsNameTheUsersLine) {
  Net net;
  const Var x = net.b.data("x", f32, {-1, 4}), y = net.b.data("y", f32, {5});
  EXPECT_TRUE(contains(error_of([&] { x + y; }), line_of(__LINE__) + " elementwise_add"));
  const Var n = net.b.data("n", i64, {1});
  EXPECT_TRUE(contains(error_of([&] { n / 2; }), line_of(__LINE__) + " 'n' of i64[1] / 2"));
}

}  // namespace
}  // namespace fleetx::testing
