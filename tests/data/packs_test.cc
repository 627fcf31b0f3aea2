#include "fleetx/data/packs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/expect_error.h"

namespace fleetx::data {
namespace {

// Lengths from 3 to 42 on one side, and a bit less or more on the other.
Demands demands(int64_t samples) {
  Demands out{.capacity = {256, 256, 20}, .token_kinds = 2};
  for (int32_t i = 0; i < samples; ++i)
    out.of_samples.insert(out.of_samples.end(), {3 + 7 * i % 40, 3 + (7 * i + i % 5) % 40, 1});
  return out;
}

TEST(Packs, HaveEverySampleOnceAndRoomForAll) {
  const Demands d = demands(1000);
  std::vector<int64_t> seen;
  for (const auto& pack : packs(d, {.seed = 3}, 0)) {
    for (int64_t kind = 0; kind < d.kinds(); ++kind) {
      int64_t sum = 0;
      for (const int64_t i : pack) sum += d.of(i, kind);
      EXPECT_LE(sum, d.capacity[static_cast<size_t>(kind)]);
    }
    seen.insert(seen.end(), pack.begin(), pack.end());
  }
  std::ranges::sort(seen);
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(seen.at(static_cast<size_t>(i)), i);
}

TEST(Packs, AreFull) {
  const Demands d = demands(1000);
  const auto padding = [&](const PackOptions& o) {
    return padding_share(d, packs(d, o, 0).size());
  };
  EXPECT_LT(padding({}), 0.06);  // the two sides differ
  // With a look at no other sample, more is left over.
  EXPECT_GT(padding({.window = 1}), 1.5 * padding({}));
}

TEST(Packs, KeepTheOrderWhereAllFits) {
  const Demands d = demands(5);
  EXPECT_EQ(packs(d, {.shuffle = false}, 0), (std::vector<std::vector<int64_t>>{{0, 1, 2, 3, 4}}));
}

TEST(Packs, DependOnSeedAndEpoch) {
  const Demands d = demands(100);
  EXPECT_EQ(packs(d, {.seed = 1}, 2), packs(d, {.seed = 1}, 2));
  EXPECT_NE(packs(d, {.seed = 1}, 2), packs(d, {.seed = 1}, 3));
  EXPECT_NE(packs(d, {.seed = 1}, 2), packs(d, {.seed = 2}, 2));
}

TEST(Packs, NameASampleThatFitsNone) {
  Demands d = demands(4);
  d.of_samples[3 * 2] = 257;
  testing::expect_error(Error::Kind::kInvalidArgument, {"sample 2 has 257 tokens; a pack has 256"},
                        [&] { packs(d, {}, 0); });
}

}  // namespace
}  // namespace fleetx::data
