// Bases and deltas, and the text layout. (Whole snapshots: server_test.cc.)
#include "fleetx/ps/snapshot.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "fleetx/ps/text_tables.h"
#include "tests/ps/job.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::ps {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using Save = SaveOptions::Mode;

JobSpec job_of(int servers) {
  JobSpec job = small_job(1, servers, Mode::kAsync, counting());
  job.sparse[0].initializer = {.kind = Initializer::Kind::kNormal, .a = 0, .b = 1, .seed = 3};
  return job;
}

using Rows = std::map<uint64_t, std::vector<float>>;

// What servers would have after they have loaded the folder.
Rows loaded(const std::string& folder, int servers) {
  const JobSpec job = job_of(servers);
  Rows rows;
  for (int s = 0; s < servers; ++s) {
    PayloadPool pool;
    TableService tables(job, s, 1, pool);
    load_snapshot(tables, folder, s);
    tables.sparse()[0]->for_each([&](uint64_t id, std::span<const float> record) {
      EXPECT_TRUE(rows.emplace(id, std::vector<float>(record.begin(), record.end())).second);
    });
  }
  return rows;
}

void push(Client& client, int servers, int64_t first, int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(first + i);
  std::vector<float> gradients(ids.size() * 3);
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = static_cast<float>(i % 5) - 2;
  client.push_sparse(0, std::make_shared<const IdBatch>(ids, servers), gradients.data(), 0.25f)
      .wait();
}

uintmax_t bytes_of(const std::string& folder, std::string_view extension) {
  uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == extension) bytes += fs::file_size(entry);
  return bytes;
}

class Deltas : public ::testing::TestWithParam<bool> {};

// With and without a disk: base and delta together are all rows.
TEST_P(Deltas, HaveWhatHasChangedSinceTheBase) {
  const testing::TempDir folder, whole, disk;
  const JobSpec job = job_of(2);
  Servers servers(job, [&](ServerOptions& o) {
    if (GetParam()) o.memory = {.bytes = 700'000, .disk = disk.path()};
  });
  Client client(servers.client(0));
  Values first(job.dense[0], 1);
  client.set_dense(0, first.const_pointers()).wait();
  push(client, 2, 0, 20'000);
  expect_error(Error::Kind::kInvalidArgument,
               {"delta", "none since this server was started", "mode=2"},
               [&] { client.save(folder.path(), {.mode = Save::kDelta}); });
  client.save(folder.path(), {.mode = Save::kBase});
  const uintmax_t base = bytes_of(folder.path(), ".part");
  const auto check = [&](const char* what) {
    client.save(whole.path());
    const Rows rows = loaded(whole.path(), 1);
    for (const int count : {1, 2, 3}) EXPECT_EQ(loaded(folder.path(), count), rows) << what;
    return rows.size();
  };
  check("nothing has changed");
  push(client, 2, 19'900, 300);  // some of them new
  client.save(folder.path(), {.mode = Save::kDelta});
  EXPECT_EQ(check("rows changed and were made"), 20'200u);
  EXPECT_LT(bytes_of(folder.path(), ".delta"), base / 20);
  // Rows that are dropped are gone after loading, too; unless they were made again.
  const int64_t dropped = client.shrink(0.3f);
  EXPECT_GT(dropped, 10);
  push(client, 2, 0, 100);
  client.save(folder.path(), {.mode = Save::kDelta});
  EXPECT_LT(check("rows are gone"), 20'200u);
  // A new base has it all, and no delta.
  client.save(folder.path(), {.mode = Save::kBase});
  EXPECT_EQ(bytes_of(folder.path(), ".delta"), 0u);
  check("the next base");
  push(client, 2, 5'000, 10);
  client.save(folder.path(), {.mode = Save::kDelta});
  check("its delta");
  // Another folder has not the base; nor has this one when something else was saved there.
  expect_error(Error::Kind::kInvalidArgument, {"not the one in this folder", whole.path()},
               [&] { client.save(whole.path(), {.mode = Save::kDelta}); });
  client.save(folder.path());
  expect_error(Error::Kind::kInvalidArgument, {"not the one in this folder", folder.path()},
               [&] { client.save(folder.path(), {.mode = Save::kDelta}); });
  client.goodbye();
}

INSTANTIATE_TEST_SUITE_P(Memory, Deltas, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Disk, Deltas, ::testing::Values(true));

TEST(Snapshot, OneThatIsCutOffIsNamed) {
  const testing::TempDir dir;
  const std::string path = dir / "a.part";
  PartWriter file(path);
  file.write(Section::kDense, std::string(1000, 'x'));
  file.finish();
  const auto whole = fs::file_size(path);
  const auto nothing = [](Section, std::string_view) {};
  read_part(path, nothing);
  for (const auto& [size, told] :
       {std::pair(whole - 1, "before its last section"), {500, "a section of 1000 bytes"}}) {
    fs::resize_file(path, size);
    expect_error(Error::Kind::kCorrupt, {path, "it is cut off", told},
                 [&] { read_part(path, nothing); });
  }
}

TEST(Snapshot, TextIsThatOfTheOriginal) {
  const testing::TempDir folder;
  const JobSpec job = job_of(2);
  Servers servers(job);
  Client client(servers.client(0));
  Values first(job.dense[0], 1);
  client.set_dense(0, first.const_pointers()).wait();
  push(client, 2, 0, 50);
  client.save(folder.path(), {.text = true});
  const Rows rows = loaded(folder.path(), 1);
  Rows read;
  for (const int server : {0, 1}) {
    const std::string path = str(folder.path(), "/rows_txt/rows.block", server);
    std::ifstream text(path + ".txt");
    size_t lines = 0;
    for (std::string line; std::getline(text, line); ++lines) {
      std::istringstream in(line);
      uint64_t id = 0;
      in >> id;
      EXPECT_EQ(in.get(), '\t');
      for (std::string value; std::getline(in, value, ',');) read[id].push_back(std::stof(value));
    }
    std::ifstream meta(path + ".meta");
    std::stringstream all;
    all << meta.rdbuf();
    EXPECT_EQ(all.str(),
              str("param=rows\nshard_id=", server,
                  "\nrow_names=Param,State0,State1\nrow_dims=3,3,3\ncount=", lines, "\n"));
  }
  EXPECT_EQ(read, rows) << "every float to its bits";
  client.goodbye();
}

// Any number of servers reads what two have written.
TEST(Snapshot, TextIsReadIntoAnyNumberOfServers) {
  const testing::TempDir folder, saved;
  const JobSpec job = job_of(2);
  Servers servers(job);
  Client client(servers.client(0));
  Values first(job.dense[0], 1);
  client.set_dense(0, first.const_pointers()).wait();
  push(client, 2, 0, 50);
  client.save(saved.path(), {.text = true});
  client.goodbye();
  const Rows rows = loaded(saved.path(), 1);
  fs::copy(fs::path(saved.path()) / "rows_txt", fs::path(folder.path()) / "rows_txt");
  for (const int n : {1, 2, 3}) EXPECT_EQ(loaded(folder.path(), n), rows) << n << " servers";
}

// Two rows as the original writes them for adam, and one that is not admitted yet.
constexpr const char* kAdamMeta =
    "param=rows\nshard_id=0\nrow_names=Param,Moment1,Moment2,Beta1Pow,Beta2Pow\n"
    "row_dims=3,3,3,1,1\ncount=3\n";
constexpr const char* kAdamRows =
    "7\t4\t0\t1\t1,2,3,4,5,6,7,8,9,0.9,0.99\n"
    "9223372036854775807\t5\t2\t1\t-1e-3,2.5,0,0,0,0,0,0,0,0.9,0.99\n"
    "8\t2\t0\t0\t1,1,1,0,0,0,0,0,0,0.9,0.99\n";

struct TextTable {
  explicit TextTable(const UpdateRulePtr& rule) : job(small_job(1, 1, Mode::kAsync, rule)) {
    job.sparse[0].min_count = 3;
  }
  void parse(const std::string& meta, const std::string& rows) {
    parse_text(tables, 0, 0, meta, rows, "rows.block0");
  }
  JobSpec job;
  PayloadPool pool;
  TableService tables{job, 0, 1, pool};
};

TEST(Snapshot, TextOfTheOriginalWithCountsIsRead) {
  TextTable t(counting());  // two states, too
  t.parse(kAdamMeta, kAdamRows);
  Rows rows;
  t.tables.sparse()[0]->for_each([&](uint64_t id, std::span<const float> record) {
    rows[id].assign(record.begin(), record.end());
  });
  EXPECT_EQ(rows, (Rows{{7, {1, 2, 3, 4, 5, 6, 7, 8, 9}},
                        {9223372036854775807ull, {-1e-3f, 2.5f, 0, 0, 0, 0, 0, 0, 0}}}));
  int64_t seen = 0;
  t.tables.sparse()[0]->for_each_seen([&](uint64_t id, int64_t count) {
    EXPECT_EQ(id, 8u);
    seen = count;
  });
  EXPECT_EQ(seen, 2);
  // The value alone: states begin anew.
  TextTable alone(counting());
  alone.parse("row_names=Param\nrow_dims=3\ncount=1\n", "5\t1,2,3\n");
  alone.tables.sparse()[0]->for_each([](uint64_t, std::span<const float> record) {
    EXPECT_EQ(std::vector<float>(record.begin(), record.end()),
              (std::vector<float>{1, 2, 3, 0, 0, 0, 5, 5, 5}));
  });
}

TEST(Snapshot, MistakesInTextAreNamedWithTheirLine) {
  const auto refused = [](Error::Kind kind, std::initializer_list<std::string_view> parts,
                          const std::string& meta, const std::string& rows,
                          const UpdateRulePtr& rule = sgd()) {
    expect_error(kind, parts, [&] { TextTable(rule).parse(meta, rows); });
  };
  const std::string meta = "param=rows\nrow_names=Param\nrow_dims=3\ncount=2\n";
  constexpr auto kCorrupt = Error::Kind::kCorrupt, kOther = Error::Kind::kInvalidArgument;
  TextTable(sgd()).parse(meta, "1\t1,2,3\n2\t1,2,3");
  refused(kCorrupt, {"rows.block0.txt:2: 'x' is not an id"}, meta, "1\t1,2,3\nx\t1,2,3\n");
  refused(kCorrupt, {":1: value 2 is '2x'"}, meta, "1\t1,2x,3\n");
  refused(kCorrupt, {":1: only 2 values where 3 are expected"}, meta, "1\t1,2\n");
  refused(kCorrupt, {":1: more than 3 values"}, meta, "1\t1,2,3,4\n");
  refused(kCorrupt, {":1: expected id, count"}, meta, "1\t1\t1\t7\t1,2,3\n");
  refused(kCorrupt, {"1 rows where 2 are expected", "incomplete"}, meta, "1\t1,2,3\n");
  refused(kCorrupt, {"rows.block0.meta: there is no row_dims="}, "row_names=Param\n", "");
  refused(kCorrupt, {"rows.block0.meta:1: expected name=value"}, "row_names\n", "");
  refused(kOther, {"the first column is Param of 4 values", "rows of 3", "another model"},
          "row_names=Param\nrow_dims=4\ncount=0\n", "");
  refused(kOther, {"another optimizer: 2 states (Param,Moment1,Moment2,Beta1Pow,Beta2Pow)"},
          kAdamMeta, kAdamRows, momentum());
}

TEST(Snapshot, AFolderOfTextThatIsNotOfThisModelIsRefused) {
  const testing::TempDir folder;
  fs::create_directories(fs::path(folder.path()) / "other_txt");
  expect_error(Error::Kind::kInvalidArgument, {"sparse table 'other' is not in this job"},
               [&] { loaded(folder.path(), 1); });
  fs::create_directories(fs::path(folder.path()) / "rows_txt");
  fs::remove(fs::path(folder.path()) / "other_txt");
  expect_error(Error::Kind::kInvalidArgument, {"rows.block0.txt is missing"},
               [&] { loaded(folder.path(), 1); });
}

}  // namespace
}  // namespace fleetx::ps
