#include "fleetx/data/sample_store.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fleetx/data/batches.h"
#include "tests/data/some_samples.h"

namespace fleetx::testing {
namespace {

using data::Samples;
using data::SampleStore;
using Lines = std::vector<std::string>;

std::shared_ptr<SampleStore> store_of(int64_t count) {
  auto store = std::make_shared<SampleStore>(kSomeSlots);
  for (int64_t at = 0; at < count; at += 700)
    store->append(some_samples(std::min<int64_t>(700, count - at), at));
  return store;
}

Lines pass(const std::shared_ptr<SampleStore>& store, int64_t batch = 64) {
  const auto batches = read_store(store, batch);
  Lines out;
  while (const auto samples = batches->next())
    for (const std::string& line : lines_of(*samples)) out.push_back(line);
  return out;
}

// More than one block.
TEST(SampleStore, GivesWhatItTook) {
  const auto store = store_of(20000);
  EXPECT_EQ(store->size(), 20000);
  EXPECT_EQ(pass(store), lines_of(some_samples(20000)));
  EXPECT_EQ(pass(store, 30000), lines_of(some_samples(20000)));
  EXPECT_EQ(pass(store_of(0)), Lines{});
}

TEST(SampleStore, ShufflesBySeedAndRound) {
  const auto a = store_of(9000), b = store_of(9000);
  a->shuffle(1, 0);
  b->shuffle(1, 0);
  const Lines first = pass(a);
  EXPECT_EQ(first, pass(b));
  a->shuffle(1, 1);
  EXPECT_NE(pass(a), first);
  b->shuffle(2, 0);
  EXPECT_NE(pass(b), first);
  Lines sorted = first, all = lines_of(some_samples(9000));
  std::ranges::sort(sorted);
  std::ranges::sort(all);
  EXPECT_EQ(sorted, all);
  EXPECT_NE(first, lines_of(some_samples(9000)));
}

// A pass goes on in the order in which it began.
TEST(SampleStore, ShufflingIsForTheNextPass) {
  const auto store = store_of(500);
  const auto batches = read_store(store, 100);
  Lines seen = lines_of(*batches->next());
  store->shuffle(1, 0);
  while (const auto samples = batches->next())
    for (const std::string& line : lines_of(*samples)) seen.push_back(line);
  EXPECT_EQ(seen, lines_of(some_samples(500)));
}

TEST(SampleStore, IsCompact) {
  const auto store = std::make_shared<SampleStore>(
      std::vector<data::Slot>{{"a", DType::kI64, 26}, {"b", DType::kF32, 13}});
  Samples samples(store->slots());
  for (Samples* s = &samples; s->count < 1000; ++s->count) {
    s->columns[0].values.room<int64_t>(26);
    s->columns[0].values.added(26);
    s->columns[1].values.room<float>(13);
    s->columns[1].values.added(13);
  }
  for (int i = 0; i < 30; ++i) store->append(samples);
  EXPECT_EQ(store->bytes(), 30000u * (26 * 8 + 13 * 4));
}

}  // namespace
}  // namespace fleetx::testing
