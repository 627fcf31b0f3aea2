// Rows that go to disk and come back: a table with a small budget is, to the bit, the table that
// has all of its rows in memory.
#include "fleetx/ps/row_shard.h"

#include <gtest/gtest.h>

#include <algorithm>
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
        disk(open_disk_rows({folder.path() + "/rows", 1 << 20})),
        table(spec, threads, {.budget = &budget, .disk = disk.get()}) {}
  testing::TempDir folder;
  MemoryBudget budget;
  std::unique_ptr<DiskRows> disk;
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
  const testing::TempDir folder;
  const DiskOptions options{folder.path() + "/rows", 1 << 20};
  auto first = open_disk_rows(options);
  testing::expect_error(Error::Kind::kUnsupported, {options.folder, "lock"},
                        [&] { open_disk_rows(options); });
  const float value = 3;
  const float* const record = &value;
  const uint64_t id = 7;
  first->write({0, 1}, {&id, 1}, {&record, 1}, sizeof value);
  testing::expect_error(Error::Kind::kCorrupt, {options.folder, "4 bytes, not 8"}, [&] {
    first->read({0, 1}, {&id, 1}, 8, [](size_t, const void*) {});
  });
  first.reset();
  EXPECT_FALSE(std::filesystem::exists(options.folder)) << "nothing is left behind";
  const auto again = open_disk_rows(options);
  again->read({0, 1}, {&id, 1}, sizeof value,
              [](size_t, const void*) { ADD_FAILURE() << "a row of the server before"; });
}

}  // namespace
}  // namespace fleetx::ps
