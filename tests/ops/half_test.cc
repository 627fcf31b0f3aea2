// 16-bit floats: vectors convert them as base/half.h does, and every op that a network computes in
// 16 bits takes them. (What it makes of them is tested with its cases, as <op>.<label>.bf16.)
#include "fleetx/ops/lib/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "fleetx/base/rng.h"

namespace fleetx::testing {
namespace {

template <class T>
class HalfTypes : public ::testing::Test {};
using Types = ::testing::Types<BFloat16, Half>;
TYPED_TEST_SUITE(HalfTypes, Types);

bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

TYPED_TEST(HalfTypes, EveryValueIsWidenedExactly) {
  std::vector<uint16_t> all(1 << 16);
  std::iota(all.begin(), all.end(), uint16_t{0});
  std::vector<float> wide(all.size());
  ops::widen(DTypeOf<TypeParam>::value, all.data(), wide.data(), 1 << 16);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto want = static_cast<float>(std::bit_cast<TypeParam>(all[i]));
    ASSERT_TRUE(same(wide[i], want)) << i << ": " << wide[i] << " instead of " << want;
  }
}

// All exponents, with mantissas around those that are rounded to even, and random ones.
TYPED_TEST(HalfTypes, ValuesAreRoundedToTheNearestEven) {
  std::vector<float> x;
  for (uint32_t exponent = 0; exponent < 512; ++exponent)
    for (uint32_t bits : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u,
                          0x18000u, 0x400000u, 0x7fefffu, 0x7ff000u, 0x7f7fffu, 0x7f8000u,
                          0x7fffffu, static_cast<uint32_t>(mix(1, exponent)) & 0x7fffffu})
      x.push_back(std::bit_cast<float>(exponent << 23 | bits));
  std::vector<uint16_t> out(x.size());
  ops::narrow(x.data(), DTypeOf<TypeParam>::value, out.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::fpclassify(x[i]) == FP_SUBNORMAL) continue;  // kernels flush them
    const TypeParam want(x[i]);
    ASSERT_TRUE(same(std::bit_cast<TypeParam>(out[i]), want)) << x[i];
  }
}

TEST(Half, OpsOfNetworksTakeIt) {
  for (const char* op : {"conv2d",
                         "conv2d_norm",
                         "conv2d_transpose",
                         "fc",
                         "fc_group",
                         "matmul",
                         "attention",
                         "elementwise_add",
                         "elementwise_sub",
                         "elementwise_mul",
                         "elementwise_div",
                         "elementwise_max",
                         "elementwise_min",
                         "elementwise_pow",
                         "fused_elementwise",
                         "scale",
                         "sum",
                         "relu",
                         "relu6",
                         "leaky_relu",
                         "gelu",
                         "tanh",
                         "sigmoid",
                         "swish",
                         "softplus",
                         "hard_swish",
                         "clip",
                         "softmax",
                         "batch_norm",
                         "batch_norm_again",
                         "layer_norm",
                         "pool2d",
                         "dropout",
                         "reshape",
                         "transpose",
                         "concat",
                         "split",
                         "slice",
                         "stack",
                         "squeeze",
                         "unsqueeze",
                         "flatten",
                         "pad",
                         "expand",
                         "tile",
                         "gather",
                         "where",
                         "masked_fill",
                         "embedding",
                         "sum_to",
                         "reduce_mean",
                         "assign",
                         "flip"}) {
    bool found = false;
    const auto& unit = *::testing::UnitTest::GetInstance();
    for (int s = 0; s < unit.total_test_suite_count(); ++s) {
      const ::testing::TestSuite& suite = *unit.GetTestSuite(s);
      if (std::string_view(suite.name()) != op) continue;
      for (int t = 0; t < suite.total_test_count(); ++t)
        found |= std::string_view(suite.GetTestInfo(t)->name()).ends_with(".bf16");
    }
    EXPECT_TRUE(found) << op << " is in no test of 16-bit floats";
  }
}

}  // namespace
}  // namespace fleetx::testing
