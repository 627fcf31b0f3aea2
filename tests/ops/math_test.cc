// How far the f32 functions of ops/lib/math.h are from the truth, in units in the last place.
#include "fleetx/ops/lib/math.h"

#include <gtest/gtest.h>

#include <functional>

namespace fleetx::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double ulps(float got, double want) {
  const auto rounded = static_cast<float>(want);
  const float next = std::nextafter(std::fabs(rounded), kInfinity);
  const double unit = std::max(static_cast<double>(next) - std::fabs(rounded), 0x1p-149);
  return std::abs(static_cast<double>(got) - want) / unit;
}

double worst(float low, float high, float (*got)(float), double (*want)(double)) {
  constexpr int kPoints = 400000;
  double most = 0;
  for (int i = 0; i <= kPoints; ++i) {
    const float x = low + (high - low) * (static_cast<float>(i) / kPoints);
    most = std::max(most, ulps(got(x), want(static_cast<double>(x))));
  }
  return most;
}

TEST(Math, ExpIsAccurate) {
  EXPECT_LT(worst(-87, 88.7f, math::exp, std::exp), 2);
  EXPECT_LT(worst(-1, 1, math::exp, std::exp), 2);
  EXPECT_EQ(math::exp(kInfinity), kInfinity);
  EXPECT_EQ(math::exp(-kInfinity), 0);
  EXPECT_EQ(math::exp(89.0f), kInfinity);
  EXPECT_EQ(math::exp(0.0f), 1);
  EXPECT_TRUE(std::isnan(math::exp(kNan)));
}

TEST(Math, Expm1IsAccurate) {
  EXPECT_LT(worst(-30, 0, math::expm1, std::expm1), 3);
  EXPECT_LT(worst(-1e-3f, 1e-3f, math::expm1, std::expm1), 3);
  EXPECT_LT(worst(0, 80, math::expm1, std::expm1), 3);
  EXPECT_EQ(math::expm1(-kInfinity), -1);
  EXPECT_TRUE(std::isnan(math::expm1(kNan)));
}

TEST(Math, LogIsAccurate) {
  EXPECT_LT(worst(1e-3f, 3, math::log, std::log), 3);
  EXPECT_LT(worst(0.99f, 1.01f, math::log, std::log), 3);
  EXPECT_LT(worst(1, 1e30f, math::log, std::log), 3);
  EXPECT_LT(worst(1e-36f, 1e-30f, math::log, std::log), 3);
  EXPECT_LT(ulps(math::log(1e-42f), std::log(static_cast<double>(1e-42f))), 3);
  EXPECT_EQ(math::log(0.0f), -kInfinity);
  EXPECT_EQ(math::log(-0.0f), -kInfinity);
  EXPECT_EQ(math::log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(math::log(-1.0f)));
  EXPECT_TRUE(std::isnan(math::log(-kInfinity)));
  EXPECT_TRUE(std::isnan(math::log(kNan)));
}

TEST(Math, Log1pIsAccurate) {
  EXPECT_LT(worst(0, 1, math::log1p, std::log1p), 3);
  EXPECT_LT(worst(0, 1e-5f, math::log1p, std::log1p), 3);
}

TEST(Math, TanhIsAccurate) {
  EXPECT_LT(worst(-12, 12, math::tanh, std::tanh), 4);
  EXPECT_LT(worst(-1e-3f, 1e-3f, math::tanh, std::tanh), 4);
  EXPECT_EQ(math::tanh(kInfinity), 1);
  EXPECT_EQ(math::tanh(-kInfinity), -1);
  EXPECT_TRUE(std::isnan(math::tanh(kNan)));
}

TEST(Math, ErfIsAccurate) {
  EXPECT_LT(worst(-5, 5, math::erf, std::erf), 8);
  EXPECT_LT(worst(-1e-3f, 1e-3f, math::erf, std::erf), 8);
  EXPECT_FLOAT_EQ(math::erf(kInfinity), 1);
  EXPECT_FLOAT_EQ(math::erf(-kInfinity), -1);
  EXPECT_TRUE(std::isnan(math::erf(kNan)));
}

TEST(Math, GeluSlopeIsAccurate) {
  for (float x = -8; x < 8; x += 1e-4f) {
    const double exact = math::gelu_slope(static_cast<double>(x));
    ASSERT_NEAR(static_cast<double>(math::gelu_slope(x)), exact, 4e-7) << x;
  }
  EXPECT_NEAR(math::gelu_slope(kInfinity), 1, 4e-7);
  EXPECT_NEAR(math::gelu_slope(-kInfinity), 0, 4e-7);
  EXPECT_TRUE(std::isnan(math::gelu_slope(kNan)));
}

TEST(Math, SigmoidIsAccurate) {
  const auto exact = [](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LT(worst(-80, 80, math::sigmoid, exact), 4);
  EXPECT_EQ(math::sigmoid(kInfinity), 1);
  EXPECT_EQ(math::sigmoid(-kInfinity), 0);
  EXPECT_TRUE(std::isnan(math::sigmoid(kNan)));
}

}  // namespace
}  // namespace fleetx::ops
