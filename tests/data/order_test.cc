#include "fleetx/data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace fleetx::data {
namespace {

TEST(Order, IsAPermutationOfSeedAndEpoch) {
  const auto a = shuffled(1000, 1, 0);
  EXPECT_EQ(std::set(a.begin(), a.end()).size(), 1000u);
  EXPECT_EQ(*std::min_element(a.begin(), a.end()), 0);
  EXPECT_EQ(*std::max_element(a.begin(), a.end()), 999);
  EXPECT_EQ(a, shuffled(1000, 1, 0));
  EXPECT_NE(a, shuffled(1000, 1, 1));
  EXPECT_NE(a, shuffled(1000, 2, 0));
  EXPECT_FALSE(std::is_sorted(a.begin(), a.end()));
  EXPECT_TRUE(shuffled(0, 1, 0).empty());
  EXPECT_EQ(shuffled(1, 1, 0), std::vector<int64_t>{0});
}

TEST(Order, AllPermutationsAreEquallyLikely) {
  std::map<std::vector<int64_t>, int> seen;
  const int trials = 24000;
  for (int epoch = 0; epoch < trials; ++epoch) ++seen[shuffled(4, 9, epoch)];
  ASSERT_EQ(seen.size(), 24u);
  double chi2 = 0;
  for (const auto& [order, count] : seen) chi2 += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi2, 49.7);  // 99.9 % of chi-square with 23 degrees of freedom
}

TEST(Order, ShardsArePiecesOfOneWorkersBatches) {
  // Ten samples on four workers, two each and then one: padded to 12 by samples 0 and 1.
  const std::vector<std::vector<int64_t>> want{{0, 1, 8}, {2, 3, 9}, {4, 5, 0}, {6, 7, 1}};
  for (int rank = 0; rank < 4; ++rank) {
    const Shard shard{rank, 4};
    ASSERT_EQ(shard.size(10), 3);
    const std::vector<int64_t> got{shard.place(0, 0, 2, 10), shard.place(0, 1, 2, 10),
                                   shard.place(2, 0, 1, 10)};
    EXPECT_EQ(got, want[static_cast<size_t>(rank)]);
  }
  EXPECT_EQ((Shard{0, 4}.size(61700)), 15425);
  EXPECT_EQ((Shard{0, 4, Uneven::kDrop}.size(10)), 2);  // 8 and 9 are left out
}

}  // namespace
}  // namespace fleetx::data
