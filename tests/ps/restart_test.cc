// Servers that are started again: from their own snapshot, or without one.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <thread>

#include "fleetx/ps/own_snapshot.h"
#include "fleetx/ps/snapshot.h"
#include "tests/ps/job.h"
#include "tests/ps/process.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::ps {
namespace {

using testing::expect_error;
using testing::TempDir;

// Two servers as processes, with snapshots.
struct Pair {
  explicit Pair(const std::string& mode, int workers) : mode(mode), workers(workers) {
    for (int s = 0; s < 2; ++s) start(s, "fresh");
  }
  void start(int s, const std::string& how) {
    const auto at = static_cast<size_t>(s);
    servers[at] = std::make_unique<Process>(
        std::vector<std::string>{"server", std::to_string(s), endpoints[at], mode,
                                 std::to_string(workers), "2", snapshot(s), how},
        folder / ("log" + std::to_string(s)));
  }
  std::string snapshot(int s) const { return folder / ("snapshot" + std::to_string(s)); }
  JobSpec job() const {
    return small_job(workers, 2, mode == "sync" ? Mode::kSync : Mode::kAsync, add_rule());
  }
  ClientOptions client(int worker) const {
    return {.job = job(),
            .worker = worker,
            .servers = endpoints,
            .secret = "s3cret",
            .connect_timeout = std::chrono::seconds(20),
            .reconnect_timeout = std::chrono::seconds(20)};
  }

  const std::string mode;
  const int workers;
  TempDir folder;
  std::vector<std::string> endpoints = free_endpoints(2);
  std::unique_ptr<Process> servers[2];
};

// Waits for a snapshot that begins after this call.
void wait_for_snapshot(const std::string& path) {
  namespace fs = std::filesystem;
  for (int n = 0; n < 2; ++n) {
    fs::remove(path);
    for (const double end = now() + 20; now() < end && !fs::exists(path);)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_TRUE(fs::exists(path));
}

// How many pushes of a table the log of a server says to be lost.
int64_t lost_in(const std::string& log, const std::string& table) {
  int64_t sum = 0;
  const std::regex line("are lost since the snapshot:.*?\\b" + table + " (\\d+)");
  for (std::sregex_iterator it(log.begin(), log.end(), line), end; it != end; ++it)
    sum += std::stoll((*it)[1]);
  return sum;
}

std::vector<int64_t> some_ids() {
  std::vector<int64_t> ids(20);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i) * 1000;
  return ids;
}

// Pushes ones to both tables until it is told to stop; how many times.
int64_t push_ones(Client& client, const JobSpec& job, const std::atomic<bool>& stop) {
  Values ones(job.dense[0]);
  for (auto& p : ones.params) std::ranges::fill(p, 1.0f);
  const auto ids = std::make_shared<const IdBatch>(some_ids(), job.servers);
  const std::vector<float> rows(60, 1.0f);
  int64_t pushes = 0;
  while (!stop) {
    client.push_dense(0, ones.const_pointers(), 0).wait();
    client.push_sparse(0, ids, rows.data(), 0).wait();
    ++pushes;
  }
  client.flush();
  return pushes;
}

TEST(Restart, AServerGoesOnFromItsSnapshotAndSaysExactlyWhatIsLost) {
  Pair pair("async", 2);
  const JobSpec job = pair.job();
  Client a(pair.client(0)), b(pair.client(1));
  Values values(job.dense[0]);
  for (auto& p : values.params) std::ranges::fill(p, 0.0f);
  a.set_dense(0, values.const_pointers()).wait();
  const auto ids = std::make_shared<const IdBatch>(some_ids(), job.servers);
  std::vector<float> first(60), last(60);
  a.pull_sparse(0, ids, first.data()).wait();

  std::atomic<bool> stop{false};
  int64_t pushes[2] = {0, 0};
  std::thread other([&] { pushes[1] = push_ones(b, job, stop); });
  std::thread own([&] { pushes[0] = push_ones(a, job, stop); });
  wait_for_snapshot(pair.snapshot(0));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  pair.servers[0]->signal(SIGKILL);
  EXPECT_EQ(pair.servers[0]->wait(), 137);
  pair.start(0, "restore");
  EXPECT_TRUE(pair.servers[0]->says("are lost since the snapshot"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  stop = true;
  own.join();
  other.join();

  const auto total = static_cast<float>(pushes[0] + pushes[1]);
  const std::string log = pair.servers[0]->output();
  const auto lost_dense = static_cast<float>(lost_in(log, "dense")),
             lost_rows = static_cast<float>(lost_in(log, "rows"));
  EXPECT_GT(lost_dense, 0) << log;
  a.pull_dense(0, values.pointers()).wait();
  std::vector<float> all;
  for (const auto& p : values.params) all.insert(all.end(), p.begin(), p.end());
  EXPECT_EQ(std::ranges::max(all), total) << "the other server has lost nothing";
  EXPECT_EQ(std::ranges::min(all), total - lost_dense) << log;
  a.pull_sparse(0, ids, last.data()).wait();
  for (size_t i = 0; i < 20; ++i) {
    const int server = server_of(static_cast<uint64_t>(i) * 1000, 2);
    EXPECT_NEAR(last[3 * i] - first[3 * i], total - (server == 0 ? lost_rows : 0), 1e-2) << log;
  }
  a.goodbye();
  b.goodbye();
  for (auto& server : pair.servers) EXPECT_EQ(server->wait(), 0) << server->output();
}

TEST(Restart, AServerWithoutSnapshotIsRefused) {
  for (const char* mode : {"async", "sync"}) {
    Pair pair(mode, 1);
    const JobSpec job = pair.job();
    Client client(pair.client(0));
    Values values(job.dense[0]);
    client.set_dense(0, values.const_pointers()).wait();
    client.push_dense(0, values.const_pointers(), 0).wait();
    pair.servers[1]->signal(SIGKILL);
    EXPECT_EQ(pair.servers[1]->wait(), 137);
    pair.start(1, "fresh");
    expect_error(Error::Kind::kInvalidArgument,
                 {"server 1", "was started again without a snapshot", "is lost"}, [&] {
                   for (;;) client.pull_dense(0, values.pointers()).wait();
                 });
  }
}

TEST(Restart, SyncServersMakeNoSnapshots) {
  Pair pair("sync", 1);
  Client client(pair.client(0));
  Values values(pair.job().dense[0]);
  client.set_dense(0, values.const_pointers()).wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(900));  // three intervals
  EXPECT_FALSE(std::filesystem::exists(pair.snapshot(0)));
  client.goodbye();
}

TEST(Restart, ADamagedSnapshotIsNamed) {
  TempDir folder;
  const JobSpec job = small_job(1, 1, Mode::kAsync, sgd());
  PayloadPool pool;
  TableService tables(job, 0, 1, pool);
  const std::string path = folder / "own";
  {
    OwnSnapshot snapshot(path);
    snapshot.write(tables, {{.start = 7, .last = 9}});
    EXPECT_FALSE(std::filesystem::exists(path)) << "not before finish()";
    snapshot.finish();
  }
  TableService other(job, 0, 1, pool);
  EXPECT_EQ(load_own_snapshot(other, path, 0).workers[0].last, 9u);
  { OwnSnapshot unfinished(path); }
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
  EXPECT_EQ(load_own_snapshot(other, path, 0).workers[0].start, 7u);

  std::string bytes = read_file(path);
  bytes[bytes.size() / 2] ^= 1;
  write_file(path, bytes);
  expect_error(Error::Kind::kCorrupt, {path}, [&] { load_own_snapshot(other, path, 0); });
  expect_error(Error::Kind::kInvalidArgument, {folder / "none"},
               [&] { load_own_snapshot(other, folder / "none", 0); });
  const std::string progress = encode(Progress{tables.progress(), {{1, 2}}});
  JobSpec more = job;
  more.workers = 2;
  expect_error(Error::Kind::kInvalidArgument, {"1 workers, not 2"},
               [&] { decode_progress(progress, more, "x"); });
  for (size_t n = 0; n < progress.size(); ++n)
    expect_error(Error::Kind::kCorrupt, {},
                 [&] { decode_progress(progress.substr(0, n), job, "x"); });
}

}  // namespace
}  // namespace fleetx::ps
