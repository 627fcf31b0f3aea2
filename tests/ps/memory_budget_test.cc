#include "fleetx/ps/memory_budget.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/ps/job.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::ps {
namespace {

using testing::expect_error;

TEST(MemoryBudget, KeepsAFloorForEveryShare) {
  MemoryBudget budget(100);
  std::optional<MemoryBudget::Share> early(std::in_place, budget, 20);
  MemoryBudget::Share late(budget, 20);
  EXPECT_TRUE(early->take(80));  // its floor and what nobody keeps
  EXPECT_FALSE(early->take(1));
  EXPECT_TRUE(late.take(20));
  EXPECT_FALSE(late.take(1));
  EXPECT_EQ(budget.used(), 100);
  early->give_back(70);
  EXPECT_TRUE(late.take(60));
  EXPECT_FALSE(late.take(1));
  EXPECT_TRUE(early->take(10));
  EXPECT_EQ(budget.used(), 100);
  early.reset();  // its floor is free, too
  EXPECT_TRUE(late.take(20));
  EXPECT_FALSE(late.take(1));
  EXPECT_TRUE(MemoryBudget::Share().take(int64_t{1} << 50)) << "no budget";
}

JobSpec wide_job(Mode mode, int workers) {
  JobSpec job = small_job(workers, 1, mode, sgd());
  job.sparse[0].dim = 64;
  return job;
}

std::shared_ptr<const IdBatch> ids_from(int64_t first, int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(first + i);
  return std::make_shared<const IdBatch>(ids, 1);
}

// Pulls new ids until the server refuses; how many rows there are.
int64_t fill(Client& client) {
  std::vector<float> rows(256 * 64);
  for (int64_t made = 0; made < 200'000; made += 256) {
    try {
      client.pull_sparse(0, ids_from(made, 256), rows.data()).wait();
    } catch (const Error& e) {
      EXPECT_EQ(to_string(e.kind()), to_string(Error::Kind::kUnsupported));
      for (const char* part :
           {"'rows'", "2097152 bytes", "--server_memory", "--server_disk", "fleet.shrink"})
        EXPECT_TRUE(testing::contains(e.what(), part));
      return made;
    }
  }
  ADD_FAILURE() << "a server of 2 MB has taken 50 MB";
  return 0;
}

TEST(MemoryBudget, AServerRefusesRowsBeyondItAndServesTheOthers) {
  const JobSpec job = wide_job(Mode::kAsync, 2);
  Servers servers(job, [](ServerOptions& o) { o.memory.bytes = 2 << 20; });
  Client client(servers.client(0)), other(servers.client(1));
  const int64_t made = fill(client);
  EXPECT_GT(made, 3000) << "most of the budget is of use";  // of 7,300 whose values alone fit
  const std::vector<ServerStats> before = client.stats();
  EXPECT_LE(before[0].memory_used, 2 << 20);
  EXPECT_GT(before[0].memory_used, 1 << 20);
  EXPECT_LE(before[0].tables[1].bytes, before[0].memory_used);
  // The connection is as good as before, and so are rows that exist.
  std::vector<float> rows(256 * 64), again(256 * 64), gradients(256 * 64, 1);
  client.pull_sparse(0, ids_from(0, 256), rows.data()).wait();
  client.push_sparse(0, ids_from(0, 256), gradients.data(), 0.5f).wait();
  client.pull_sparse(0, ids_from(0, 256), again.data()).wait();
  for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(again[i], rows[i] - 0.5f);
  // A push that would make a row changes nothing, also not the rows that exist.
  expect_error(Error::Kind::kUnsupported, {"no memory"}, [&] {
    std::vector<float> many(64 * 10'000, 1);
    other.push_sparse(0, ids_from(0, 10'000), many.data(), 0.5f).wait();
  });
  client.pull_sparse(0, ids_from(0, 256), rows.data()).wait();
  EXPECT_EQ(rows, again);
  // Rows that are dropped make room for others.
  EXPECT_GT(client.shrink(1e9f), 3000);
  EXPECT_LT(client.stats()[0].memory_used, 1 << 20);
  EXPECT_EQ(fill(client), made);
  client.goodbye();
}

// In sync mode the step that cannot be applied is told to whoever waits for it.
TEST(MemoryBudget, SyncTellsEveryWorker) {
  JobSpec job = wide_job(Mode::kSync, 2);
  job.sparse[0].min_count = 2;  // pushes make rows
  Servers servers(job, [](ServerOptions& o) { o.memory.bytes = 2 << 20; });
  Client a(servers.client(0)), b(servers.client(1));
  const auto ids = ids_from(0, 20'000);
  const std::vector<float> gradients(20'000 * 64, 1);
  std::vector<float> rows(20'000 * 64);
  for (int step = 0; step < 2; ++step) {
    a.push_sparse(0, ids, gradients.data(), 1).wait();
    b.push_sparse(0, ids, gradients.data(), 1).wait();
  }
  for (Client* client : {&a, &b})
    expect_error(Error::Kind::kUnsupported, {"'rows'", "no memory"},
                 [&] { client->pull_sparse(0, ids, rows.data()).wait(); });
  a.goodbye();
  b.goodbye();
}

TEST(MemoryBudget, OneThatCannotDoIsRefusedAtStart) {
  const JobSpec job = wide_job(Mode::kAsync, 1);
  const testing::TempDir folder;
  const auto start = [&](MemoryLimits limits) {
    Servers servers(job, [&](ServerOptions& o) { o.memory = limits; });
  };
  const auto bad = Error::Kind::kInvalidArgument;
  expect_error(bad, {"8 bytes", "--server_memory"}, [&] { start({.bytes = 8}); });
  expect_error(bad, {"--server_memory"}, [&] { start({.disk = folder.path()}); });
  expect_error(bad, {"too small", "'rows'"},
               [&] { start({.bytes = 30'000, .disk = folder.path()}); });
  expect_error(Error::Kind::kUnsupported, {"/proc/none"},
               [&] { start({.bytes = 1 << 24, .disk = "/proc/none"}); });
}

}  // namespace
}  // namespace fleetx::ps
