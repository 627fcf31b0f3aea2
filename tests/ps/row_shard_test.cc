// Rows that go to disk and come back: a table with a small budget is, to the bit, the table that
// has all of its rows in memory.
#include "fleetx/ps/row_shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include "fleetx/base/rng.h"
#include "fleetx/ps/id_batch.h"
#include "fleetx/ps/sparse_table.h"
#include "tests/ps/job.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::ps {
namespace {

constexpr int64_t kDim = 8;
constexpr uint64_t kIds = 40'000;

SparseSpec spec_of(UpdateRulePtr rule) {
  return {.name = "t",
          .dim = kDim,
          .rule = std::move(rule),
          .initializer = {.kind = Initializer::Kind::kNormal, .a = 0, .b = 1, .seed = 5}};
}

// A table whose memory is for few of its rows.
struct OnDisk {
  explicit OnDisk(const SparseSpec& spec, int threads = 1, int64_t bytes = 1 << 20)
      : budget(bytes),
        disk(folder.path() + "/rows"),
        table(spec, threads, {.budget = &budget, .disk = &disk}) {}
  testing::TempDir folder;
  MemoryBudget budget;
  DiskRows disk;
  SparseTable table;
};

std::map<uint64_t, std::vector<float>> rows_of(SparseTable& table) {
  std::map<uint64_t, std::vector<float>> rows;
  table.for_each([&](uint64_t id, std::span<const float> record) {
    EXPECT_TRUE(rows.emplace(id, std::vector<float>(record.begin(), record.end())).second) << id;
  });
  EXPECT_EQ(static_cast<int64_t>(rows.size()), table.rows());
  return rows;
}

// A step of training on ids of which some come often; the same for both tables.
void train_step(uint64_t step, size_t count, SparseTable& a, SparseTable& b) {
  std::vector<int64_t> ids;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t r = mix(step, i);
    ids.push_back(static_cast<int64_t>(r % 3 == 0 ? (r >> 8) % kIds : (r >> 8) % 500));
  }
  const std::vector<uint64_t> repeated(ids.begin(), ids.end());
  std::vector<float> x(count * kDim), y(count * kDim);
  a.pull(repeated, x.data());
  b.pull(repeated, y.data());
  ASSERT_EQ(x, y) << "step " << step;
  const IdBatch batch(ids, 1);
  std::vector<float> gradients(batch.unique().size() * kDim);
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = static_cast<float>(i % 13) - 6;
  for (SparseTable* table : {&a, &b}) table->push(batch.unique(), gradients.data(), 0.125f);
}

TEST(RowShard, TrainsFromDiskToTheSameBits) {
  SparseTable memory(spec_of(counting()));
  OnDisk disk(spec_of(counting()));
  for (uint64_t step = 0; step < 60; ++step)
    train_step(step, step % 7 == 0 ? 20'000 : 900, memory, disk.table);
  EXPECT_GT(disk.table.rows(), 5 * disk.table.resident()) << "most rows are on disk";
  EXPECT_LE(disk.table.bytes(), disk.budget.bytes());
  EXPECT_LE(disk.budget.used(), disk.budget.bytes());
  EXPECT_EQ(rows_of(memory), rows_of(disk.table));

  const auto keep = [](uint64_t id, std::span<const float> record) {
    return id % 3 != 0 && record[0] > -1;
  };
  EXPECT_EQ(memory.drop(keep), disk.table.drop(keep));
  EXPECT_EQ(rows_of(memory), rows_of(disk.table));
  std::vector<float> record(static_cast<size_t>(memory.record_floats()), 7);
  for (uint64_t id = 0; id < kIds; id += 5)
    for (SparseTable* table : {&memory, &disk.table}) {
      record[0] = static_cast<float>(id);
      table->put(id, record);
    }
  EXPECT_EQ(rows_of(memory), rows_of(disk.table));
  for (uint64_t step = 60; step < 70; ++step) train_step(step, 3000, memory, disk.table);
  EXPECT_EQ(rows_of(memory), rows_of(disk.table));
  // Inference makes no rows, wherever they are not.
  const int64_t rows = disk.table.rows();
  const std::vector<uint64_t> absent{kIds + 1, kIds + 2};
  std::vector<float> zeros(2 * kDim, 1);
  disk.table.pull(absent, zeros.data(), Absent::kZero);
  EXPECT_EQ(zeros, std::vector<float>(2 * kDim, 0));
  EXPECT_EQ(disk.table.rows(), rows);
}

TEST(RowShard, CountsOfIdsThatAreNotAdmittedGoToDisk) {
  SparseSpec spec = spec_of(sgd());
  spec.min_count = 3;
  SparseTable memory(spec);
  OnDisk disk(spec, 1, 600'000);
  std::vector<uint64_t> ids(kIds / 4);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  const std::vector<float> gradients(ids.size() * kDim, 1);
  for (int push = 0; push < 5; ++push) {
    for (SparseTable* table : {&memory, &disk.table}) table->push(ids, gradients.data(), 0.5f);
    EXPECT_EQ(disk.table.rows(), push < 2 ? 0 : static_cast<int64_t>(ids.size()));
    EXPECT_LE(disk.table.bytes(), disk.budget.bytes());
  }
  EXPECT_EQ(rows_of(memory), rows_of(disk.table));
}

// Every addition must arrive while rows go out and come back under several threads, and while one
// looks at all rows.
TEST(RowShard, ThreadsLoseNothing) {
  SparseSpec spec = spec_of(add_rule());
  spec.initializer = {};
  constexpr int kThreads = 3, kPushes = 60;
  OnDisk disk(spec, kThreads);
  std::vector<std::thread> team;
  for (int t = 0; t < kThreads; ++t)
    team.emplace_back([&, t] {
      std::vector<uint64_t> ids(2000);
      const std::vector<float> ones(ids.size() * kDim, 1);
      for (int p = 0; p < kPushes; ++p) {
        for (size_t i = 0; i < ids.size(); ++i)
          ids[i] = (i + 1237 * static_cast<size_t>(p * (t + 1))) % kIds;
        disk.table.push(ids, ones.data(), 0);
      }
    });
  for (int look = 0; look < 5; ++look)
    disk.table.for_each(
        [](uint64_t, std::span<const float> record) { ASSERT_EQ(record[0], record[7]); });
  for (std::thread& thread : team) thread.join();
  double sum = 0;
  for (const auto& [id, record] : rows_of(disk.table)) sum += record[0];
  EXPECT_EQ(sum, kThreads * kPushes * 2000.0);
}

// A record larger than the usual chunk, and memory for a few of them.
TEST(RowShard, WideRows) {
  SparseSpec spec = spec_of(sgd());
  spec.dim = 4096;
  SparseTable memory(spec);
  OnDisk disk(spec, 1, 6 << 20);
  std::vector<uint64_t> ids(1000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = mix(1, i);
  std::vector<float> x(ids.size() * 4096), y(x.size());
  for (int time = 0; time < 2; ++time) {
    memory.pull(ids, x.data());
    disk.table.pull(ids, y.data());
    ASSERT_EQ(x, y);
    memory.push(ids, x.data(), 0.5f);
    disk.table.push(ids, x.data(), 0.5f);
  }
  EXPECT_LT(disk.table.resident(), 400);
}

TEST(DiskRows, AFolderIsOfOneServer) {
  const testing::TempDir parent;
  const std::string folder = parent.path() + "/rows";
  auto first = std::make_unique<DiskRows>(folder);
  testing::expect_error(Error::Kind::kUnsupported, {folder, "lock"},
                        [&] { DiskRows second(folder); });
  const float value = 3;
  const float* const record = &value;
  const uint64_t id = 7;
  const uint32_t mark = 5;
  first->write({0, 1}, {&id, 1}, {&record, 1}, {&mark, 1}, sizeof value);
  testing::expect_error(Error::Kind::kCorrupt, {folder, "4 bytes, not 8"}, [&] {
    first->read({0, 1}, {&id, 1}, 8, [](size_t, const void*, uint32_t) {});
  });
  size_t found = 0;
  first->read({0, 1}, {&id, 1}, 4, [&](size_t i, const void* bytes, uint32_t m) {
    EXPECT_EQ(i, 0u);
    EXPECT_EQ(m, mark);
    EXPECT_EQ(std::memcmp(bytes, &value, 4), 0);
    ++found;
  });
  EXPECT_EQ(found, 1u);
  first.reset();
  EXPECT_FALSE(std::filesystem::exists(folder)) << "nothing is left behind";
  DiskRows again(folder);
  again.read({0, 1}, {&id, 1}, sizeof value,
             [](size_t, const void*, uint32_t) { ADD_FAILURE() << "a row of the server before"; });
}

// Against a map: new ids, ids that are written again, erased ones whose slots others get.
TEST(DiskRows, KeepsWhatWasWrittenLast) {
  const testing::TempDir parent;
  DiskRows disk(parent.path() + "/rows");
  std::map<uint64_t, std::pair<float, uint32_t>> expected;
  for (uint64_t round = 0; round < 40; ++round) {
    std::vector<uint64_t> ids;
    std::vector<std::array<float, 5>> records;
    std::vector<uint32_t> marks;
    for (uint64_t i = 0; i < 2000; ++i) ids.push_back(mix(round, i) % 20'000);
    std::ranges::sort(ids);
    ids.erase(std::ranges::unique(ids).begin(), ids.end());
    for (const uint64_t id : ids) {
      const auto value = static_cast<float>(id + round);
      records.push_back({value, 0, 0, 0, value});
      marks.push_back(static_cast<uint32_t>(round));
      expected[id] = {value, static_cast<uint32_t>(round)};
    }
    std::vector<const float*> pointers;
    for (const auto& record : records) pointers.push_back(record.data());
    disk.write({3, 2}, ids, pointers, marks, sizeof records[0]);
    ids.resize(ids.size() / 3);
    ids.push_back(1 << 30);  // is not there
    disk.erase({3, 2}, ids);
    for (const uint64_t id : ids) expected.erase(id);
  }
  std::map<uint64_t, std::pair<float, uint32_t>> all;
  const auto last_of = [](const void* record) {
    std::array<float, 5> values;
    std::memcpy(values.data(), record, sizeof values);
    return values[4];
  };
  disk.for_each({3, 2}, [&](uint64_t id, const void* record, uint32_t mark) {
    EXPECT_TRUE(all.emplace(id, std::pair(last_of(record), mark)).second) << id;
  });
  EXPECT_EQ(all, expected);
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < 20'000; ++id) ids.push_back(id);
  size_t found = 0;
  disk.read({3, 2}, ids, 20, [&](size_t i, const void* record, uint32_t mark) {
    EXPECT_EQ(expected.at(ids[i]), std::pair(last_of(record), mark));
    ++found;
  });
  EXPECT_EQ(found, expected.size());
  disk.for_each({3, 1}, [](uint64_t, const void*, uint32_t) { ADD_FAILURE() << "another place"; });
}

}  // namespace
}  // namespace fleetx::ps
