#include "fleetx/base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "fleetx/base/env.h"
#include "fleetx/base/error.h"
#include "fleetx/base/names.h"

namespace fleetx {
namespace {

TEST(Threads, PartsCoverTheRangeOnce) {
  for (const int64_t n : {0, 1, 7, 1000}) {
    for (const int parts : {1, 2, 3}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
      parallel_parts(n, parts, [&](int, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (const auto& count : seen) EXPECT_EQ(count, 1);
    }
  }
}

TEST(Threads, EveryThreadIsReached) {
  set_num_threads(2);
  std::atomic<int> calls{0};
  on_every_thread([&] { ++calls; });
  EXPECT_EQ(calls, 2);
}

TEST(Threads, TheLineNamesThreadsAndCores) {
  set_num_threads(1);
  EXPECT_EQ(describe_threads().find("1 compute thread on "), 0u) << describe_threads();
}

TEST(Threads, ABadNumberIsRefused) {
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_GE(physical_cores(), 1);
}

TEST(Env, OnlyListedVariablesAreRead) { EXPECT_THROW(env::get("FLEETX_NO_SUCH_THING"), Error); }

TEST(Names, SuggestsNearOnes) {
  EXPECT_EQ(did_you_mean("conv2", {"conv2d", "fc", "softmax"}), "; did you mean 'conv2d'?");
  EXPECT_EQ(did_you_mean("zzzzzz", {"conv2d", "fc"}), "");
}

}  // namespace
}  // namespace fleetx
