#include "fleetx/ps/row_life.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fleetx/ps/sparse_table.h"
#include "tests/ps/job.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::ps {
namespace {

using testing::expect_error;

SparseSpec spec_with(const RowLife& life) {
  SparseSpec spec{.name = "t", .dim = 3, .rule = counting()};
  spec.initializer = {.kind = Initializer::Kind::kConstant, .a = 0.5f};
  spec.life = life;
  return spec;
}

TEST(RowLife, ScoresFadeByTheDay) {
  const RowLife life{.decay = 0.5f};
  const RowUse use = use_on(life, {.show = 8, .click = 4, .day = 2}, 5);
  EXPECT_EQ(use.show, 1);
  EXPECT_EQ(use.click, 0.5f);
  EXPECT_FLOAT_EQ(score_of(life, use), 0.1f * 0.5f + 0.5f);
  EXPECT_EQ(use_on(life, {.show = 8, .click = 4, .day = 5}, 5).show, 8);
}

std::vector<uint64_t> ids_of(SparseTable& table) {
  std::vector<uint64_t> ids;
  table.for_each([&](uint64_t id, std::span<const float>) { ids.push_back(id); });
  std::ranges::sort(ids);
  return ids;
}

// Rows 0 to 9; row i is shown i times on the first day, and clicked every second time.
void first_day(SparseTable& table) {
  std::vector<uint64_t> ids;
  std::vector<float> rows(30), uses;
  for (uint64_t i = 0; i < 10; ++i) {
    ids.push_back(i);
    uses.push_back(static_cast<float>(i));
    uses.push_back(static_cast<float>(i / 2));
  }
  table.pull(ids, rows.data());
  table.count(ids, uses.data());
  table.count(std::vector<uint64_t>{77}, uses.data());  // has no row: nothing
}

TEST(RowLife, RowsGoByScoreAndByUnseenDays) {
  SparseTable table(spec_with({.decay = 0.9f, .threshold = 1, .unseen_days = 2}));
  first_day(table);
  EXPECT_EQ(table.record_floats(), 3 * 3 + kUseFloats);
  // After the first day 0.9 * (0.1 * (show - click) + click) is 0.99 of row 2 and 1.08 of row 3.
  EXPECT_EQ(table.shrink(std::nullopt), 3);
  EXPECT_EQ(ids_of(table), (std::vector<uint64_t>{3, 4, 5, 6, 7, 8, 9}));
  // A threshold takes the place of the table's; nobody was seen on the second day.
  EXPECT_EQ(table.shrink(0.0f), 0);
  const float one[] = {1, 0};
  table.count(std::vector<uint64_t>{9}, one);
  EXPECT_EQ(table.shrink(0.0f), 0);
  // Row 9 was seen on the third day, the others are unseen for three.
  EXPECT_EQ(table.shrink(0.0f), 6);
  EXPECT_EQ(ids_of(table), (std::vector<uint64_t>{9}));
  table.for_each([&](uint64_t, std::span<const float> record) {
    const float left = std::pow(0.9f, 2.0f);
    EXPECT_FLOAT_EQ(record[9], 9 * left + 1);
    EXPECT_FLOAT_EQ(record[10], 4 * left);
    EXPECT_EQ(record[11], 2);
  });
}

TEST(RowLife, UpdatesAreThoseOfATableWithoutStatistics) {
  SparseTable with(spec_with({}));
  SparseSpec plain = spec_with({});
  plain.life.reset();
  SparseTable without(plain);
  EXPECT_EQ(without.record_floats(), 9) << "rows without statistics have no room for them";
  const std::vector<uint64_t> ids{3, 1u << 20, 5};
  const std::vector<float> gradients{1, 2, 3, 4, 5, 6, 7, 8, 9}, uses{1, 0, 1, 1, 5, 2};
  std::vector<float> x(9), y(9);
  for (int step = 0; step < 4; ++step) {
    for (SparseTable* table : {&with, &without}) table->push(ids, gradients.data(), 0.25f);
    with.count(ids, uses.data());
  }
  with.pull(ids, x.data());
  without.pull(ids, y.data());
  EXPECT_EQ(x, y);
  EXPECT_EQ(with.scalars().size(), without.scalars().size() + 1);
}

TEST(RowLife, TheSameFromDisk) {
  const SparseSpec spec = spec_with({.threshold = 0.5f, .unseen_days = 3});
  const testing::TempDir folder;
  MemoryBudget budget(600'000);
  DiskRows disk(folder.path() + "/rows");
  SparseTable small(spec, 1, {.budget = &budget, .disk = &disk}), memory(spec);
  for (uint64_t step = 0; step < 12; ++step) {
    std::vector<uint64_t> ids(8000);
    std::vector<float> uses, rows(ids.size() * 3);
    for (uint64_t i = 0; i < ids.size(); ++i) {
      ids[i] = (i * (step + 1)) % 40'009;
      uses.push_back(static_cast<float>(1 + i % 7));
      uses.push_back(static_cast<float>(i % 2));
    }
    for (SparseTable* table : {&small, &memory}) {
      table->pull(ids, rows.data());
      table->count(ids, uses.data());
    }
    if (step % 2 == 1) {
      EXPECT_EQ(small.shrink(std::nullopt), memory.shrink(std::nullopt));
    }
  }
  EXPECT_GT(small.rows(), small.resident());
  EXPECT_EQ(ids_of(small), ids_of(memory));
}

// Statistics of several workers and servers are summed; saves keep them, for any number of servers,
// and a job that wants no statistics, or a save that has none, can be loaded, too.
TEST(RowLife, SavesKeepStatistics) {
  const testing::TempDir folder;
  JobSpec job = small_job(1, 2, Mode::kAsync, sgd());
  job.sparse[0].life = RowLife{.threshold = 5, .unseen_days = 10};
  const std::vector<int64_t> ids{1, 2, 3, 2};
  const std::vector<float> shows{1, 10, 100, 10}, clicks{1, 2, 30, 3};
  const auto see = [&](Client& client, int servers) {
    const auto batch = std::make_shared<const IdBatch>(ids, servers);
    std::vector<float> rows(12);
    client.pull_sparse(0, batch, rows.data()).wait();
    client.push_uses(0, *batch, shows, clicks).wait();
  };
  {
    Servers servers(job);
    Client client(servers.client(0));
    Values first(job.dense[0], 1);
    client.set_dense(0, first.const_pointers()).wait();
    see(client, 2);
    client.save(folder.path());
    client.goodbye();
  }
  job.servers = 1;
  {
    Servers servers(job, nullptr, folder.path());
    Client client(servers.client(0));
    see(client, 1);
    EXPECT_EQ(client.shrink(), 1) << "row 2 has 11.6 by now, row 1 has 2";
    EXPECT_EQ(client.shrink(50.0f), 1) << "row 3 stays";
    client.save(folder.path());
    client.goodbye();
  }
  job.sparse[0].life.reset();
  {
    Servers servers(job, nullptr, folder.path());
    Client client(servers.client(0));
    EXPECT_EQ(client.stats()[0].tables[1].rows, 1);
    expect_error(Error::Kind::kInvalidArgument, {"'rows'", "no statistics"},
                 [&] { see(client, 1); });
  }
  {
    Servers servers(job, nullptr, folder.path());
    Client client(servers.client(0));
    client.save(folder.path());
    client.goodbye();
  }
  job.sparse[0].life = RowLife{};
  Servers servers(job, nullptr, folder.path());
  Client client(servers.client(0));
  EXPECT_EQ(client.shrink(0.0f), 0);
  EXPECT_EQ(client.shrink(), 1);
  client.goodbye();
}

// In sync mode statistics are no step of the table.
TEST(RowLife, SyncStepsDoNotWaitForStatistics) {
  JobSpec job = small_job(2, 1, Mode::kSync, sgd());
  job.sparse[0].life = RowLife{};
  Servers servers(job);
  Client a(servers.client(0)), b(servers.client(1));
  const auto ids = std::make_shared<const IdBatch>(std::vector<int64_t>{4, 9}, 1);
  const std::vector<float> ones(6, 1);
  std::vector<float> rows(6);
  for (int step = 0; step < 3; ++step) {
    a.push_uses(0, *ids, std::vector<float>{1, 1}, std::vector<float>{0, 1});
    for (Client* client : {&a, &b}) client->push_sparse(0, ids, ones.data(), 1);
    for (Client* client : {&a, &b}) client->pull_sparse(0, ids, rows.data()).wait();
  }
  a.goodbye();
  b.goodbye();
}

TEST(RowLife, BadSettingsAreNamed) {
  JobSpec job = small_job(1, 1, Mode::kAsync, sgd());
  job.sparse[0].life = RowLife{.decay = 1.5f};
  expect_error(Error::Kind::kInvalidArgument, {"'rows'", "show_click_decay_rate is 1.5"},
               [&] { job.check(); });
  job.sparse[0].life = RowLife{.unseen_days = -1};
  expect_error(Error::Kind::kInvalidArgument, {"'rows'", "delete_after_unseen_days is -1"},
               [&] { job.check(); });
}

}  // namespace
}  // namespace fleetx::ps
