// Winograd's algorithm, oneDNN's or our own, against the definition.
#include <algorithm>

#include <gtest/gtest.h>

#include "fleetx/base/cpu.h"
#include "tests/ops/convolve.h"

namespace fleetx::testing {
namespace {

TEST(Winograd, EqualsTheDefinition) {
  const ConvolutionCase cases[] = {
      {{4, 32, 17, 18}, {48, 32, 3, 3}},  // tiles that hang over the border
      {{2, 35, 28, 28}, {37, 35, 3, 3}},  // channels that no block divides
      {{1, 64, 33, 64}, {32, 64, 3, 3}},
      {{4, 70, 30, 30}, {40, 70, 3, 3}},   // too many squares for a cache, in both directions
      {{1, 64, 28, 28}, {64, 64, 3, 3}}};  // one picture
  int most_used = 0;
  for (const ConvolutionCase& s : cases) {
    int used = 0, not_wanted = 0;
    const Tensors got = convolve(s, {}, "wino", &used),
                  want = convolve(s, {"winograd"}, "wino", &not_wanted);
    most_used = std::max(most_used, used);
    // With AVX-512 it is oneDNN's, which refuses some shapes depending on the size of the caches.
    if (cpu::best_isa() == cpu::Isa::kAvx2) {
      EXPECT_EQ(used, 2) << s.x;
    }
    EXPECT_EQ(not_wanted, 0) << "skipping 'winograd' must give the definition everywhere";
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_LT(distance(got[i], want[i]), 1e-4) << "fetch " << i << " of " << s.x;
  }
  EXPECT_EQ(most_used, cpu::best_isa() >= cpu::Isa::kAvx2 ? 2 : 0);
}

TEST(Winograd, OfFewTilesMakesForwardOnly) {
  for (const ConvolutionCase& s :
       {ConvolutionCase{{1, 64, 7, 7}, {96, 64, 3, 3}, "relu"},
        ConvolutionCase{{1, 70, 9, 10}, {36, 70, 3, 3}}}) {  // channels that no block divides
    int used = 0, not_wanted = 0;
    const Tensors got = convolve(s, {}, "wino", &used),
                  want = convolve(s, {"winograd"}, "wino", &not_wanted);
    EXPECT_EQ(used, cpu::best_isa() == cpu::Isa::kAvx2 ? 1 : 0) << s.x;
    EXPECT_LT(distance(got[0], want[0]), 1e-4) << s.x;
  }
}

TEST(Winograd, IsNotUsedWhereItDoesNotPay) {
  for (const ConvolutionCase& s :
       {ConvolutionCase{{1, 64, 4, 12}, {64, 64, 3, 3}},      // few tiles
        ConvolutionCase{{8, 16, 32, 32}, {16, 16, 3, 3}}}) {  // few channels
    int used = 0;
    convolve(s, {}, "wino", &used);
    EXPECT_EQ(used, 0) << s.x;
  }
}

}  // namespace
}  // namespace fleetx::testing
