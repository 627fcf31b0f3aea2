#include "fleetx/fleet/global_shuffle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <thread>

#include "tests/data/some_samples.h"
#include "tests/support/expect_error.h"

namespace fleetx::fleet {
namespace {

using data::Samples;
using data::SampleStore;
using Lines = std::vector<std::string>;
using testing::kSomeSlots;

void on_ranks(int size, const std::function<void(comm::Communicator&)>& fn) {
  auto ranks = comm::make_local(size, comm::Milliseconds(20'000));
  std::vector<std::thread> threads;
  for (auto& rank : ranks)
    threads.emplace_back([&fn, own = std::move(rank)] {
      try {
        fn(*own);
      } catch (const std::exception& e) {
        ADD_FAILURE() << "rank " << own->rank() << ": " << e.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

Lines in_order(const SampleStore& store) {
  Samples samples(store.slots());
  store.gather(*store.order(), samples);
  return testing::lines_of(samples);
}

// What each rank has afterwards; rank r begins with sizes[r] samples.
std::vector<Lines> shuffle(const std::vector<int64_t>& sizes, uint64_t seed, int64_t round) {
  std::vector<Lines> out(sizes.size());
  on_ranks(static_cast<int>(sizes.size()), [&](comm::Communicator& workers) {
    const auto rank = static_cast<size_t>(workers.rank());
    int64_t first = 0;
    for (size_t r = 0; r < rank; ++r) first += sizes[r];
    SampleStore store(kSomeSlots);
    store.append(testing::some_samples(sizes[rank], first));
    out[rank] = in_order(global_shuffle(store, workers, seed, round));
  });
  return out;
}

TEST(GlobalShuffle, EverySampleGoesToOneWorker) {
  // The second is more than is sent at once.
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{300, 0, 500}, {40000, 10}, {0, 0}, {7}}) {
    const auto dealt = shuffle(sizes, 1, 0);
    int64_t total = 0;
    for (const int64_t n : sizes) total += n;
    Lines all;
    for (const Lines& part : dealt) {
      const int64_t least = total / static_cast<int64_t>(sizes.size());
      EXPECT_TRUE(std::ssize(part) == least || std::ssize(part) == least + 1) << part.size();
      all.insert(all.end(), part.begin(), part.end());
    }
    Lines expected = testing::lines_of(testing::some_samples(total));
    std::ranges::sort(all);
    std::ranges::sort(expected);
    EXPECT_EQ(all, expected);
  }
}

TEST(GlobalShuffle, MixesWorkers) {
  const Lines own = testing::lines_of(testing::some_samples(1000));
  for (const Lines& part : shuffle({1000, 1000}, 3, 0)) {
    int64_t from_first = 0;
    for (const std::string& line : part) from_first += std::ranges::count(own, line);
    EXPECT_NEAR(static_cast<double>(from_first), 500, 1);
    EXPECT_FALSE(std::ranges::is_sorted(part));
  }
}

TEST(GlobalShuffle, IsAFunctionOfSeedAndRound) {
  const auto first = shuffle({200, 200}, 1, 0);
  EXPECT_EQ(shuffle({200, 200}, 1, 0), first);
  EXPECT_NE(shuffle({200, 200}, 2, 0), first);
  EXPECT_NE(shuffle({200, 200}, 1, 1), first);
}

TEST(GlobalShuffle, WorkersHaveTheSameSlots) {
  on_ranks(2, [](comm::Communicator& workers) {
    const SampleStore store({{"x", DType::kI64, workers.rank() == 0 ? 1 : 2}});
    EXPECT_TRUE(testing::contains(testing::error_of([&] { global_shuffle(store, workers, 0, 0); }),
                                  "workers 0 and 1 have different slots"));
  });
}

}  // namespace
}  // namespace fleetx::fleet
