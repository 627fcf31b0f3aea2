#include "fleetx/data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "fleetx/base/interrupt.h"
#include "fleetx/data/multi_slot.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::testing {
namespace {

using data::BadLines;
using data::Batches;
using data::ReadOptions;
using Ids = std::vector<int64_t>;
using std::chrono::steady_clock;

const std::vector<data::Slot> kValue{{"x", DType::kI64, 1}};

ReadOptions options(std::vector<std::string> files, int64_t batch, int threads = 1) {
  return {.files = std::move(files),
          .format = data::multi_slot_format(kValue),
          .batch = batch,
          .threads = threads};
}

// Files of consecutive numbers, with so many each.
std::vector<std::string> write(const TempDir& folder, const std::vector<int>& sizes) {
  std::vector<std::string> files;
  int next = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::string text;
    for (int k = 0; k < sizes[i]; ++k) text += "1 " + std::to_string(next++) + "\n";
    files.push_back(folder.write("part-" + std::to_string(i), text));
  }
  return files;
}

Ids ids_of(const data::Samples& s) {
  const auto* x = s.columns[0].values.data<int64_t>();
  return {x, x + s.columns[0].values.size()};
}

std::vector<Ids> all(Batches& batches) {
  std::vector<Ids> out;
  while (auto samples = batches.next()) out.push_back(ids_of(*samples));
  EXPECT_FALSE(batches.next().has_value());
  return out;
}

TEST(Batches, GoOverTheEndsOfFilesInTheirOrder) {
  const TempDir folder;
  const auto files = write(folder, {3, 0, 1, 3});
  EXPECT_EQ(all(*read_files(options(files, 2))), (std::vector<Ids>{{0, 1}, {2, 3}, {4, 5}, {6}}));
  EXPECT_EQ(all(*read_files(options(files, 100))), (std::vector<Ids>{{0, 1, 2, 3, 4, 5, 6}}));
  EXPECT_EQ(all(*read_files(options({folder.write("empty", "")}, 2))), std::vector<Ids>{});
}

TEST(Batches, ThreadsTakeTurns) {
  const TempDir folder;
  const auto files = write(folder, {5, 3, 3});
  // Thread 0 has files 0 and 2 (0 to 4, 8 to 10), thread 1 has file 1.
  const std::vector<Ids> expected{{0, 1}, {5, 6}, {2, 3}, {4, 8}, {9, 10}, {7}};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(all(*read_files(options(files, 2, 2))), expected);
  // What remains of each thread becomes whole batches at the end.
  const auto one_each = write(folder, {1, 1, 1, 1, 1});
  EXPECT_EQ(all(*read_files(options(one_each, 2, 8))), (std::vector<Ids>{{0, 1}, {2, 3}, {4}}));
}

TEST(Batches, ManySamplesOnceEach) {
  const TempDir folder;
  const auto files = write(folder, {1000, 17, 0, 3000, 250});
  for (const int threads : {1, 2, 5}) {
    Ids seen;
    const auto batches = all(*read_files(options(files, 64, threads)));
    for (size_t i = 0; i < batches.size(); ++i) {
      EXPECT_EQ(batches[i].size(), i + 1 < batches.size() ? 64u : 4267u % 64);
      seen.insert(seen.end(), batches[i].begin(), batches[i].end());
    }
    std::ranges::sort(seen);
    ASSERT_EQ(seen.size(), 4267u);
    for (size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], static_cast<int64_t>(i));
  }
}

TEST(Batches, ErrorsComeWhereTheirBatchWouldBe) {
  const TempDir folder;
  auto files = write(folder, {4});
  files.push_back(folder.write("bad", "1 4\nx\n"));
  const auto batches = read_files(options(files, 2));
  EXPECT_EQ(ids_of(*batches->next()), (Ids{0, 1}));
  EXPECT_EQ(ids_of(*batches->next()), (Ids{2, 3}));
  for (int i = 0; i < 2; ++i)
    expect_error(Error::Kind::kCorrupt, {"bad:2: sample 'x'"}, [&] { batches->next(); });
}

TEST(Batches, SkippedLinesAreCounted) {
  const TempDir folder;
  auto o =
      options({folder.write("a", "1 0\nx\n1 1\n"), folder.write("b", "1 2\n2 3 4\ny\n")}, 2, 2);
  o.bad_lines = BadLines::kSkip;
  const auto batches = read_files(o);
  EXPECT_EQ(all(*batches), (std::vector<Ids>{{0, 1}, {2}}));
  EXPECT_EQ(batches->skipped(), 3);
}

TEST(Batches, CanBeInterruptedAndEndQuickly) {
  const TempDir folder;
  auto o = options(write(folder, {0}), 2);
  o.command = "sleep 60";
  const auto begin = steady_clock::now();
  {
    const auto batches = read_files(o);
    const InterruptCheck check([] { throw std::runtime_error("stop"); });
    EXPECT_THROW(batches->next(), std::runtime_error);
  }
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(10));
}

// One that nobody reads waits with a full queue.
TEST(Batches, MayBeLeft) {
  const TempDir folder;
  const auto batches = read_files(options(write(folder, {1000}), 1));
  EXPECT_EQ(ids_of(*batches->next()), Ids{0});
}

TEST(Batches, WrongOptions) {
  EXPECT_TRUE(contains(error_of([] { read_files(options({}, 1)); }), "set_filelist"));
  EXPECT_TRUE(contains(error_of([] { read_files(options({"a"}, 0)); }), "batches of 0 samples"));
  EXPECT_TRUE(contains(error_of([] { read_files(options({"a"}, 1, 0)); }), "0 reader threads"));
}

}  // namespace
}  // namespace fleetx::testing
