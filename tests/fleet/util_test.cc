#include "fleetx/fleet/util.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "tests/launch/fleetrun.h"
#include "tests/support/expect_error.h"

namespace fleetx::fleet {
namespace {

using fleetx::testing::expect_error;
using Names = std::vector<std::string>;
using Doubles = std::vector<double>;
using Integers = std::vector<int64_t>;

// Runs fn on every rank, each a thread.
void on_ranks(int size, const std::function<void(const Util&, int)>& fn) {
  auto ranks = comm::make_local(size, comm::Milliseconds(20'000));
  std::vector<std::thread> threads;
  for (auto& rank : ranks)
    threads.emplace_back([&fn, own = std::move(rank)] {
      try {
        fn(Util(*own), own->rank());
      } catch (const std::exception& e) {
        ADD_FAILURE() << "rank " << own->rank() << ": " << e.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Util, ReducesAndGathers) {
  on_ranks(3, [](const Util& util, int rank) {
    const double r = rank;
    EXPECT_EQ(util.all_reduce(Doubles{r, 0.5}), (Doubles{3, 1.5}));
    EXPECT_EQ(util.all_reduce(Doubles{r}, "min"), Doubles{0});
    EXPECT_EQ(util.all_reduce(Integers{rank, int64_t{1} << 60}, "max"),
              (Integers{2, int64_t{1} << 60}));
    EXPECT_EQ(util.all_reduce(Doubles{}), Doubles{});
    EXPECT_EQ(util.all_gather(r + 0.25), (Doubles{0.25, 1.25, 2.25}));
    EXPECT_EQ(util.all_gather(int64_t{rank}), (Integers{0, 1, 2}));
    EXPECT_EQ(util.all_gather(Integers(static_cast<size_t>(rank), rank)),
              (std::vector<Integers>{{}, {1}, {2, 2}}));
    EXPECT_EQ(util.all_gather(Doubles{}), std::vector<Doubles>(3));
    util.barrier();
  });
}

TEST(Util, BadCallsAreRefusedBeforeAnybodyWaits) {
  on_ranks(2, [](const Util& util, int rank) {
    using Kind = Error::Kind;
    expect_error(Kind::kInvalidArgument, {"worker 0 gives 1", "worker 1 gives 2"},
                 [&] { util.all_reduce(Doubles(static_cast<size_t>(rank + 1))); });
    expect_error(Kind::kInvalidArgument, {"'avg'", "sum, min, max"},
                 [&] { util.all_reduce(Doubles{1}, "avg"); });
    expect_error(Kind::kInvalidArgument, {"'workers'", "worker, server, all"},
                 [&] { util.barrier("workers"); });
    expect_error(Kind::kInvalidArgument, {"'server'", "no parameter servers"},
                 [&] { util.all_gather(1.0, "server"); });
    EXPECT_EQ(util.all_reduce(Doubles{1}, "sum", "all"), Doubles{2});  // the workers
    EXPECT_EQ(util.all_reduce(Doubles{1}), Doubles{2});                // the group is fine
  });
}

TEST(Util, FileShardsAreContiguous) {
  const Names files{"a", "b", "c", "d", "e"};
  EXPECT_EQ(get_file_shard(files, 0, 2), (Names{"a", "b", "c"}));
  EXPECT_EQ(get_file_shard(files, 1, 2), (Names{"d", "e"}));
  EXPECT_EQ(get_file_shard({"a", "b"}, 0, 3), Names{"a"});
  EXPECT_EQ(get_file_shard({"a", "b"}, 1, 3), Names{"b"});
  EXPECT_EQ(get_file_shard({"a", "b"}, 2, 3), Names{});
  EXPECT_EQ(get_file_shard(files, 0, 1), files);
  expect_error(Error::Kind::kInvalidArgument, {"worker 2 of 2"},
               [&] { get_file_shard(files, 2, 2); });
  on_ranks(2, [&](const Util& util, int rank) {
    EXPECT_EQ(util.get_file_shard(files), get_file_shard(files, rank, 2));
  });
}

TEST(Util, PrintsOnOneRank) {
  ::testing::internal::CaptureStdout();
  on_ranks(3, [](const Util& util, int) { util.print_on_rank("hello", 1); });
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "hello\n");
  on_ranks(1, [](const Util& util, int) {
    expect_error(Error::Kind::kInvalidArgument, {"no worker 1 of 1"},
                 [&] { util.print_on_rank("x", 1); });
  });
}

// Workers with unequal numbers of batches meet, and what one does by itself is no meeting: 5 steps
// move w by the mean of 1 and 2, 7 by the 2 of worker 1 alone.
TEST(Util, TellsTheServersOfMeetingsOnly) {
  const fleetx::testing::FleetrunResult r = fleetx::testing::run_fleetrun(
      {"--server_num=1", "--worker_num=2", FLEETX_SERVER_JOB}, {{"OMP_NUM_THREADS", "1"}});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(fleetx::testing::contains(r.out, "steps 17 moved -21.5")) << r.out << r.err;
  EXPECT_TRUE(fleetx::testing::contains(r.out, "worker 0 goes on"));
}

}  // namespace
}  // namespace fleetx::fleet
