#include "fleetx/ps/initializer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fleetx::ps {
namespace {

struct Moments {
  double mean = 0, deviation = 0, least = 0, most = 0;
};

Moments moments_of(const Initializer& initializer) {
  std::vector<float> row(7);
  double sum = 0, squares = 0, least = 1e9, most = -1e9, n = 0;
  for (uint64_t id = 0; id < 20'000; ++id) {
    initializer.fill(1, id, row);
    for (const double x : row) {
      sum += x, squares += x * x, n += 1;
      least = std::min(least, x), most = std::max(most, x);
    }
  }
  const double mean = sum / n;
  return {mean, std::sqrt(squares / n - mean * mean), least, most};
}

TEST(Initializer, HasItsDistribution) {
  using Kind = Initializer::Kind;
  const Moments uniform = moments_of({.kind = Kind::kUniform, .a = -1, .b = 3, .seed = 1});
  EXPECT_NEAR(uniform.mean, 1, 0.02);
  EXPECT_NEAR(uniform.deviation, 4 / std::sqrt(12.0), 0.02);
  EXPECT_GE(uniform.least, -1);
  EXPECT_LT(uniform.most, 3);
  const Moments normal = moments_of({.kind = Kind::kNormal, .a = 2, .b = 0.5f, .seed = 1});
  EXPECT_NEAR(normal.mean, 2, 0.01);
  EXPECT_NEAR(normal.deviation, 0.5, 0.01);
  const Moments cut = moments_of({.kind = Kind::kTruncatedNormal, .a = 2, .b = 0.5f, .seed = 1});
  EXPECT_NEAR(cut.mean, 2, 0.01);
  EXPECT_NEAR(cut.deviation, 0.5 * 0.8796, 0.01);
  EXPECT_GE(cut.least, 1);
  EXPECT_LE(cut.most, 3);
  const Moments constant = moments_of({.kind = Kind::kConstant, .a = 2});
  EXPECT_EQ(constant.least, 2);
  EXPECT_EQ(constant.most, 2);
}

TEST(Initializer, DependsOnItsSeed) {
  std::vector<float> a(4), b(4);
  Initializer first{.kind = Initializer::Kind::kUniform, .a = 0, .b = 1, .seed = 1}, second = first;
  second.seed = 2;
  first.fill(0, 5, a);
  second.fill(0, 5, b);
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace fleetx::ps
