#include "fleetx/base/rng.h"

#include <gtest/gtest.h>

namespace fleetx {
namespace {

TEST(Philox, MatchesThePublishedVectors) {
  // Known answers of Random123: philox4x32-10 for zero and for all-ones counter and key.
  const auto zero = Philox(0, 0).block(0);
  EXPECT_EQ(zero, (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const auto ones = Philox(~uint64_t{0}, ~uint64_t{0}).block(~uint64_t{0});
  EXPECT_EQ(ones, (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Philox, UniformAndNormalHaveTheRightMoments) {
  const Philox philox(7, 11);
  const int n = 200000;
  double sum = 0, sum_normal = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const float u = philox.uniform(static_cast<uint64_t>(i));
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    sum += u;
    const double z = philox.normal(static_cast<uint64_t>(i));
    sum_normal += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum / n, 0.5, 0.005);
  EXPECT_NEAR(sum_normal / n, 0.0, 0.01);
  EXPECT_NEAR(squares / n, 1.0, 0.02);
}

TEST(Philox, StreamsDiffer) {
  EXPECT_NE(Philox(1, 2).bits(0), Philox(1, 3).bits(0));
  EXPECT_NE(Philox(1, 2).bits(0), Philox(2, 2).bits(0));
  EXPECT_NE(stable_hash("fc_0.w_0"), stable_hash("fc_1.w_0"));
}

}  // namespace
}  // namespace fleetx
