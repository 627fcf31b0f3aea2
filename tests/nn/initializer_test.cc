#include "fleetx/nn/initializer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fleetx/base/error.h"

namespace fleetx::nn::init {
namespace {

TEST(Initializer, Fans) {
  const auto pair = [](const Shape& s) { return std::pair(fans(s).in, fans(s).out); };
  EXPECT_EQ(pair({}), std::pair(int64_t{1}, int64_t{1}));
  EXPECT_EQ(pair({7}), std::pair(int64_t{7}, int64_t{7}));
  EXPECT_EQ(pair({20, 30}), std::pair(int64_t{20}, int64_t{30}));
  EXPECT_EQ(pair({64, 3, 7, 7}), std::pair(int64_t{3 * 49}, int64_t{64 * 49}));
}

double attr(const ir::Initializer& i, const char* name) { return i.attrs.at(name).as<double>(); }

TEST(Initializer, WidthsFollowTheFans) {
  const Shape s = {20, 30};
  EXPECT_NEAR(attr(xavier_uniform()(s), "high"), std::sqrt(6.0 / 50), 1e-12);
  EXPECT_NEAR(attr(xavier_normal()(s), "std"), std::sqrt(2.0 / 50), 1e-12);
  EXPECT_NEAR(attr(msra_uniform()(s), "high"), std::sqrt(6.0 / 20), 1e-12);
  EXPECT_NEAR(attr(msra_uniform()(s), "low"), -std::sqrt(6.0 / 20), 1e-12);
  EXPECT_NEAR(attr(msra_normal()(s), "std"), std::sqrt(2.0 / 20), 1e-12);
}

TEST(Initializer, OpsAndSeeds) {
  const Shape s = {4};
  EXPECT_EQ(constant(2)(s).op, "fill");
  EXPECT_EQ(uniform(0, 1)(s).op, "uniform");
  EXPECT_EQ(normal(0, 1)(s).op, "gaussian");
  EXPECT_EQ(truncated_normal(0, 1)(s).op, "truncated_gaussian");
  EXPECT_EQ(normal(0, 1, 42)(s).attrs.at("seed"), ir::Attr(int64_t{42}));
}

TEST(Initializer, RejectsNonsense) {
  EXPECT_THROW(uniform(1, 0), Error);
  EXPECT_THROW(normal(0, -1), Error);
  EXPECT_THROW(truncated_normal(0, -1), Error);
  EXPECT_EQ(assign({1, 2})(Shape{2}).op, "assign_value");
  EXPECT_THROW(assign({1, 2})(Shape{3}), Error);
}

}  // namespace
}  // namespace fleetx::nn::init
