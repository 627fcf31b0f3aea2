#include "fleetx/data/length_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fleetx/base/rng.h"
#include "tests/support/expect_error.h"

namespace fleetx::data {
namespace {

using testing::expect_error;

std::vector<int32_t> some_lengths(size_t n) {
  std::vector<int32_t> lengths;
  for (size_t i = 0; i < n; ++i)
    lengths.push_back(1 + static_cast<int32_t>(Philox(1, 0).bits(i) % 100));
  return lengths;
}

std::multiset<int64_t> all(const std::vector<LengthBatch>& batches) {
  std::multiset<int64_t> out;
  for (const LengthBatch& b : batches) out.insert(b.samples.begin(), b.samples.end());
  return out;
}

TEST(LengthBatches, HaveEverySampleOnceAndLittlePadding) {
  const auto lengths = some_lengths(10000);
  const auto batches = length_batches(lengths, {.batch = 32, .seed = 1}, 0);
  EXPECT_EQ(batches.size(), 313u);
  const auto samples = all(batches);
  EXPECT_EQ(samples.size(), 10000u);
  EXPECT_EQ(std::set(samples.begin(), samples.end()).size(), 10000u);
  for (const LengthBatch& b : batches)
    for (const int64_t i : b.samples) EXPECT_LE(lengths[static_cast<size_t>(i)], b.length);
  EXPECT_LT(
      padding_share(lengths, length_batches(lengths, {.batch = 32, .multiple = 1, .seed = 1}, 0)),
      0.01);
  EXPECT_LT(padding_share(lengths, batches), 0.08);  // multiples of 8 of lengths from 1 on
}

TEST(LengthBatches, CountTokens) {
  const auto lengths = some_lengths(5000);
  const auto batches = length_batches(lengths, {.tokens = 512, .multiple = 4, .seed = 1}, 0);
  EXPECT_EQ(all(batches).size(), 5000u);
  int64_t used = 0;
  for (const LengthBatch& b : batches) {
    const int64_t tokens = b.length * static_cast<int64_t>(b.samples.size());
    EXPECT_LE(tokens, 512);
    EXPECT_EQ(b.length % 4, 0);
    used += tokens;
  }
  EXPECT_GT(static_cast<double>(used) / (512.0 * static_cast<double>(batches.size())), 0.85);
  expect_error(Error::Kind::kInvalidArgument, {"has 100 tokens; a batch has at most 64"},
               [] { length_batches(std::vector<int32_t>{100}, {.tokens = 64}, 0); });
}

TEST(LengthBatches, DependOnSeedAndEpoch) {
  const auto lengths = some_lengths(500);
  const auto first = [&](uint64_t seed, int64_t epoch) {
    return length_batches(lengths, {.batch = 8, .seed = seed}, epoch)[0].samples;
  };
  EXPECT_EQ(first(1, 0), first(1, 0));
  EXPECT_NE(first(1, 0), first(1, 1));
  EXPECT_NE(first(1, 0), first(2, 0));
  const auto in_order = length_batches(lengths, {.batch = 8, .shuffle = false}, 3);
  EXPECT_EQ(in_order[1].samples, (std::vector<int64_t>{8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST(LengthBatches, MayDropTheIncompleteOne) {
  const auto lengths = some_lengths(21);
  EXPECT_EQ(length_batches(lengths, {.batch = 8, .drop_last = true}, 0).size(), 2u);
  EXPECT_EQ(length_batches(lengths, {.batch = 8}, 0).size(), 3u);
  expect_error(Error::Kind::kInvalidArgument, {"either a number of samples or a number of tokens"},
               [&] { length_batches(lengths, {}, 0); });
  expect_error(Error::Kind::kInvalidArgument, {"a multiple of 0"},
               [&] { length_batches(lengths, {.batch = 1, .multiple = 0}, 0); });
}

}  // namespace
}  // namespace fleetx::data
