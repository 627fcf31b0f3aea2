// 1x1 convolutions by products of tiles against those by the definition.
#include <gtest/gtest.h>

#include <algorithm>

#include "fleetx/base/cpu.h"
#include "fleetx/base/threads.h"
#include "tests/ops/convolve.h"

namespace fleetx::testing {
namespace {

// Places of images that no tile divides, and an odd number of blocks of channels; inner dimensions
// that are cut; a result that is written in several pieces.
const ConvolutionCase kPointwise[] = {{{3, 128, 14, 15}, {144, 128, 1, 1}},
                                      {{2, 144, 17, 17}, {128, 144, 1, 1}, "relu"},
                                      {{13, 832, 7, 7}, {128, 832, 1, 1}},
                                      {{2, 256, 32, 16}, {832, 256, 1, 1}}};

TEST(Pointwise, EqualsTheDefinition) {
  if (cpu::best_isa() < cpu::Isa::kAmx) GTEST_SKIP() << "no tiles here";
  for (const ConvolutionCase& s : kPointwise) {
    int used = 0, not_wanted = 0;
    const Tensors got = convolve(s, {}, "amx_1x1", &used),
                  want = convolve(s, {"layout"}, "amx_1x1", &not_wanted);
    EXPECT_EQ(used, 2) << s.x;
    EXPECT_EQ(not_wanted, 0) << "skipping 'layout' must give the definition everywhere";
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_LT(distance(got[i], want[i]), 1e-6) << "fetch " << i << " of " << s.x;
  }
}

TEST(Pointwise, GivesTheSameBitsOnEveryNumberOfThreads) {
  if (cpu::best_isa() < cpu::Isa::kAmx) GTEST_SKIP() << "no tiles here";
  const int before = num_threads();
  for (const ConvolutionCase& s : kPointwise) {
    int used = 0;
    set_num_threads(1);
    const Tensors one = convolve(s, {}, "amx_1x1", &used);
    for (const int threads : {2, 3}) {
      set_num_threads(threads);
      const Tensors many = convolve(s, {}, "amx_1x1", &used);
      for (size_t i = 0; i < 3; ++i)  // the sum of dbias is cut by threads
        EXPECT_TRUE(std::ranges::equal(one[i].data<float>(), many[i].data<float>()))
            << "fetch " << i << " of " << s.x << ", " << threads << " threads";
    }
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace fleetx::testing
