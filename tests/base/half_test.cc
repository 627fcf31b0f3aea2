#include "fleetx/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fleetx {
namespace {

// Every value of a 16-bit type survives the way to float and back, and rounding picks the nearest.
template <class T>
void check_all_values() {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    T value;
    value.bits = static_cast<uint16_t>(bits);
    const float wide = value;
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(T(wide))));
      continue;
    }
    ASSERT_EQ(T(wide).bits, value.bits) << wide;
  }
}

TEST(Half, AllValuesRoundTrip) { check_all_values<Half>(); }
TEST(BFloat16, AllValuesRoundTrip) { check_all_values<BFloat16>(); }

TEST(Half, RoundsToNearestEvenAndSaturatesToInfinity) {
  EXPECT_EQ(static_cast<float>(Half(1.0f + 0x1p-11f)), 1.0f);              // a tie goes to even
  EXPECT_EQ(static_cast<float>(Half(1.0f + 0x1.8p-10f)), 1.0f + 0x1p-9f);  // and here upwards
  EXPECT_EQ(static_cast<float>(Half(65504.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(Half(65520.0f))));
  EXPECT_EQ(static_cast<float>(Half(0x1p-24f)), 0x1p-24f);  // the smallest subnormal
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f + 0x1p-8f)), 1.0f);
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f + 0x1.8p-7f)), 1.0f + 0x1p-6f);
  EXPECT_TRUE(std::isinf(static_cast<float>(BFloat16(std::numeric_limits<float>::max()))));
}

}  // namespace
}  // namespace fleetx
