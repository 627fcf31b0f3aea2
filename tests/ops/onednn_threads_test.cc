// oneDNN's parallel regions run on our threads, which wait as base/team.h says.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>

#include "fleetx/base/gomp.h"
#include "fleetx/base/team.h"
#include "fleetx/base/threads.h"
#include "tests/ops/convolve.h"

namespace fleetx::testing {
namespace {

TEST(OneDnnThreads, AreOurs) {
  const int before = num_threads();
  const ConvolutionCase shape{{8, 16, 32, 32}, {16, 16, 3, 3}};
  int kernels = 0;
  set_num_threads(1);
  const Tensors want = convolve(shape, {}, "jit", &kernels);
  ASSERT_GT(kernels, 0) << "this convolution is no longer oneDNN's: take another";
  const int64_t alone = gomp::adopted_regions();
  set_num_threads(2);
  const Tensors got = convolve(shape, {}, "jit", &kernels);
  EXPECT_GT(gomp::adopted_regions(), alone) << "libdnnl found another OpenMP library first";
  for (size_t i = 0; i < got.size(); ++i) EXPECT_LT(distance(got[i], want[i]), 1e-5) << i;
  set_num_threads(before);
}

// Also of regions that do not say how many threads they want.
TEST(OneDnnThreads, AreNeverThoseOfOpenMp) {
  const int before = num_threads();
  set_num_threads(2);
  const int64_t left = gomp::left_regions();
  int kernels = 0;
  for (const int64_t channels : {16, 64, 128})
    convolve({{2, channels, 28, 28}, {channels, channels, 3, 3}}, {}, "", &kernels);
  EXPECT_EQ(gomp::left_regions(), left);
  set_num_threads(before);
}

// A program that uses OpenMP itself gets OpenMP: only oneDNN's regions are ours.
TEST(OneDnnThreads, OtherCallersGetOpenMp) {
  using Parallel = void(void (*)(void*), void*, unsigned, unsigned);
  auto* parallel = reinterpret_cast<Parallel*>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
  auto* place = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_num_threads"));
  ASSERT_TRUE(parallel != nullptr && place != nullptr);
  const int64_t adopted = gomp::adopted_regions();
  struct Seen {
    int (*threads)();
    std::atomic<int> calls{0}, sum{0}, ours{0};
  } seen{place};
  parallel(
      [](void* opaque) {
        Seen& s = *static_cast<Seen*>(opaque);
        ++s.calls;
        s.sum += s.threads();
        s.ours += team::place().parallel;
      },
      &seen, 2, 0);
  EXPECT_EQ(seen.calls, 2);
  EXPECT_EQ(seen.sum, 4);
  EXPECT_EQ(seen.ours, 0);
  EXPECT_EQ(gomp::adopted_regions(), adopted);
}

}  // namespace
}  // namespace fleetx::testing
