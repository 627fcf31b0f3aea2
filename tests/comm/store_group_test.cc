#include "fleetx/comm/store_group.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/expect_error.h"

namespace fleetx::comm {
namespace {

using testing::expect_error;

constexpr int kSize = 3;

// Each member is a thread with a connection of its own to one store.
void on_members(const std::function<void(Communicator&)>& fn) {
  StoreServer server({.secret = "s"});
  std::vector<std::thread> threads;
  for (int r = 0; r < kSize; ++r)
    threads.emplace_back([&, r] {
      auto store =
          std::make_shared<StoreClient>(StoreOptions{.server = server.endpoint(), .secret = "s"});
      fn(*make_store_group(store, "all", r, kSize));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(StoreGroup, MovesSmallThings) {
  on_members([](Communicator& group) {
    const int64_t own = group.rank();
    for (int round = 0; round < 20; ++round) {
      std::vector<double> sum{0.5 + static_cast<double>(own), -static_cast<double>(own)};
      group.all_reduce(sum.data(), 2, f64);
      EXPECT_EQ(sum, (std::vector<double>{4.5, -3}));
      float most = static_cast<float>(own);
      group.all_reduce(&most, 1, f32, ReduceOp::kMax);
      EXPECT_EQ(most, 2);
      std::vector<int64_t> all(kSize);
      group.all_gather(&own, all.data(), 1, i64);
      EXPECT_EQ(all, (std::vector<int64_t>{0, 1, 2}));
      int64_t told = own * 10;
      group.broadcast(&told, 1, i64, 1);
      EXPECT_EQ(told, 10);
      group.barrier();
    }
  });
}

TEST(StoreGroup, RefusesWhatItCannot) {
  on_members([](Communicator& group) {
    float x[kSize] = {}, y[kSize] = {};
    expect_error(Error::Kind::kUnsupported, {"all_to_all", "group of servers"},
                 [&] { group.all_to_all(x, y, 1, f32); });
    expect_error(Error::Kind::kUnsupported, {"no groups of its own"}, [&] {
      group.group({0, 1, 2});
    });
    const int64_t count = 1 + group.rank();
    expect_error(Error::Kind::kInvalidArgument, {"group/all", "bytes"},
                 [&] { group.all_reduce(x, count, f32); });
    group.barrier();
  });
}

}  // namespace
}  // namespace fleetx::comm
