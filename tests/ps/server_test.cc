#include "fleetx/ps/server.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "fleetx/base/rng.h"
#include "fleetx/comm/socket.h"
#include "fleetx/ps/wire.h"
#include "tests/ps/job.h"
#include "tests/support/expect_error.h"

namespace fleetx::ps {
namespace {

using std::chrono::milliseconds;
using testing::expect_error;

std::shared_ptr<const IdBatch> batch_of(std::vector<int64_t> ids, int servers) {
  return std::make_shared<const IdBatch>(ids, servers);
}

// What is in the tables, by one worker's pulls.
struct Model {
  std::vector<std::vector<float>> dense;
  std::vector<float> rows;
  bool operator==(const Model&) const = default;
};

Model read_model(Client& client, const JobSpec& job, const std::vector<int64_t>& ids) {
  Values values(job.dense[0]);
  client.pull_dense(0, values.pointers()).wait();
  Model model{values.params, std::vector<float>(ids.size() * 3)};
  client.pull_sparse(0, batch_of(ids, job.servers), model.rows.data()).wait();
  return model;
}

// One step of a worker: gradients that depend on the step, the worker and the values pulled.
void train_step(Client& client, const JobSpec& job, int step) {
  Values values(job.dense[0]), gradients(job.dense[0]);
  client.pull_dense(0, values.pointers()).wait();
  std::vector<int64_t> ids;
  for (int i = 0; i < 10; ++i)
    ids.push_back(static_cast<int64_t>(
        mix(static_cast<uint64_t>(step * 10 + i), static_cast<uint64_t>(client.worker())) % 30));
  std::vector<float> rows(30), row_gradients(30);
  client.pull_sparse(0, batch_of(ids, job.servers), rows.data()).wait();
  const float own = 1.0f + static_cast<float>(client.worker());
  for (size_t p = 0; p < 2; ++p)
    for (size_t i = 0; i < values.params[p].size(); ++i)
      gradients.params[p][i] = own * (values.params[p][i] - 1);
  for (size_t i = 0; i < rows.size(); ++i) row_gradients[i] = own * rows[i];
  auto ticket = client.push_dense(0, gradients.const_pointers(), 0.125f);
  client.push_sparse(0, batch_of(ids, job.servers), row_gradients.data(), 0.125f).wait();
  ticket.wait();
}

std::vector<int64_t> all_ids() {
  std::vector<int64_t> ids(30);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
  return ids;
}

// DC-ASGD, with the rule of momentum, against the formula.
TEST(Server, DelaysAreCompensated) {
  JobSpec job = small_job(2, 2, Mode::kAsync, momentum());
  job.delay_compensated = true;
  Servers servers(job);
  Client a(servers.client(0)), b(servers.client(1));
  Client* const clients[] = {&a, &b};
  Values now(job.dense[0]), velocity(job.dense[0]), got(job.dense[0]);
  for (auto& p : velocity.params) std::ranges::fill(p, 0.0f);
  a.set_dense(0, now.const_pointers()).wait();
  Values pulled[] = {now, now};
  double most = 0;  // of what the compensation changes
  // A pull ("P") or push ("p") of each worker; both push several times what they pulled once.
  const std::string who = "0101001110010110", what = "PPpppPpPpppPppPp";
  for (size_t step = 0; step < who.size(); ++step) {
    const size_t worker = static_cast<size_t>(who[step] - '0');
    if (what[step] == 'P') {
      clients[worker]->pull_dense(0, got.pointers()).wait();
      for (size_t p = 0; p < 2; ++p)
        for (size_t i = 0; i < now.params[p].size(); ++i)
          EXPECT_NEAR(got.params[p][i], now.params[p][i], 2e-5) << "step " << step;
      pulled[worker] = got;
      continue;
    }
    Values gradients(job.dense[0], -2.0f - static_cast<float>(step % 3));
    for (size_t p = 0; p < 2; ++p)
      for (size_t i = 0; i < now.params[p].size(); ++i) {
        const double g = gradients.params[p][i];
        const double delayed = now.params[p][i] - pulled[worker].params[p][i];
        const double compensated = g + g * g * delayed;
        most = std::max(most, std::abs(compensated - g));
        velocity.params[p][i] = static_cast<float>(0.9 * velocity.params[p][i] + compensated);
        now.params[p][i] -= 0.015625f * velocity.params[p][i];
      }
    clients[worker]->push_dense(0, gradients.const_pointers(), 0.015625f).wait();
  }
  a.pull_dense(0, got.pointers()).wait();
  for (size_t p = 0; p < 2; ++p)
    for (size_t i = 0; i < now.params[p].size(); ++i)
      EXPECT_NEAR(got.params[p][i], now.params[p][i],
                  2e-5 * std::max(1.0f, std::abs(now.params[p][i])));
  EXPECT_GT(most, 0.1);
  a.goodbye();
  b.goodbye();

  JobSpec sync = job;
  sync.mode = Mode::kSync;
  expect_error(Error::Kind::kInvalidArgument, {"async"}, [&] { sync.check(); });
  expect_error(Error::Kind::kInvalidArgument, {"DC-ASGD", "replicas=1"}, [&] {
    Server({.job = job, .endpoint = "127.0.0.1:0", .secret = "s", .keeps_copy_of = "127.0.0.1:1"});
  });
}

TEST(Server, AsyncAppliesEachPush) {
  const JobSpec job = small_job(1, 2, Mode::kAsync, sgd());
  Servers servers(job);
  Client client(servers.client(0));
  Values values(job.dense[0]), gradients(job.dense[0], 7);
  client.set_dense(0, values.const_pointers()).wait();
  for (int i = 0; i < 3; ++i) client.push_dense(0, gradients.const_pointers(), 0.5f).wait();
  Values pulled(job.dense[0]);
  client.pull_dense(0, pulled.pointers()).wait();
  for (size_t p = 0; p < 2; ++p)
    for (size_t i = 0; i < values.params[p].size(); ++i)
      EXPECT_EQ(pulled.params[p][i], values.params[p][i] - 1.5f * gradients.params[p][i]);

  // Repeated ids: pulled for each, their gradients summed.
  const auto ids = batch_of({4, 9, 4, 1LL << 40, -3}, 2);
  std::vector<float> before(15), after(15), unique(12);
  client.pull_sparse(0, ids, before.data()).wait();
  const std::vector<float> ones(15, 1);
  client.push_sparse(0, ids, ones.data(), 0.25f).wait();
  client.pull_sparse(0, ids, after.data()).wait();
  client.pull_sparse(0, ids, unique.data(), Rows::kUnique).wait();
  for (size_t i = 0; i < 5; ++i)
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(after[3 * i + k], before[3 * i + k] - (i == 0 || i == 2 ? 0.5f : 0.25f));
      EXPECT_EQ(after[3 * i + k], unique[3 * ids->places()[i] + k]);
    }
  const auto stats = client.stats();
  ASSERT_EQ(stats.size(), 2u);
  EXPECT_EQ(stats[0].tables[1].rows + stats[1].tables[1].rows, 4);
  EXPECT_EQ(stats[0].workers[0].state, "connected");
  client.goodbye();
  servers.join();
  EXPECT_EQ(servers.error(0), "");
}

// N workers of sync mode against one worker that pushes the average itself: the same bits where
// the sum has one order, as for two workers.
TEST(Server, SyncIsOneWorkerWithTheWholeBatch) {
  for (const auto& rule : {sgd(), momentum(), counting()}) {
    const JobSpec job = small_job(2, 2, Mode::kSync, rule);
    Servers servers(job, [](ServerOptions& o) { o.threads = 2; });
    Values first(job.dense[0]);
    std::vector<std::thread> workers;
    Model result;
    for (int w = 0; w < 2; ++w)
      workers.emplace_back([&, w] {
        Client client(servers.client(w));
        if (w == 0) client.set_dense(0, first.const_pointers()).wait();
        for (int step = 0; step < 20; ++step) train_step(client, job, step);
        client.barrier();
        if (w == 0) result = read_model(client, job, all_ids());
        client.goodbye();
      });
    for (std::thread& worker : workers) worker.join();
    servers.join();

    const JobSpec alone = small_job(1, 1, Mode::kSync, rule);
    Servers one(alone);
    Client client(one.client(0));
    client.set_dense(0, first.const_pointers()).wait();
    for (int step = 0; step < 20; ++step) {
      Values values(alone.dense[0]), gradients(alone.dense[0]);
      client.pull_dense(0, values.pointers()).wait();
      for (size_t p = 0; p < 2; ++p)
        for (size_t i = 0; i < values.params[p].size(); ++i) {
          const float x = values.params[p][i] - 1;
          gradients.params[p][i] = (x + 2 * x) * 0.5f;
        }
      std::vector<int64_t> ids;
      for (uint64_t w = 0; w < 2; ++w)
        for (int i = 0; i < 10; ++i)
          ids.push_back(static_cast<int64_t>(mix(static_cast<uint64_t>(step * 10 + i), w) % 30));
      const auto batch = batch_of(ids, 1);
      std::vector<float> rows(60), of_workers[2];
      client.pull_sparse(0, batch, rows.data()).wait();
      // Each worker sums its own rows, the server sums over workers.
      std::vector<float> sum(batch->unique().size() * 3);
      for (size_t w = 0; w < 2; ++w) {
        of_workers[w].resize(sum.size());
        for (size_t i = 10 * w; i < 10 * w + 10; ++i)
          for (size_t k = 0; k < 3; ++k)
            of_workers[w][3 * batch->places()[i] + k] +=
                static_cast<float>(w + 1) * rows[3 * i + k];
      }
      for (size_t i = 0; i < sum.size(); ++i) sum[i] = (of_workers[0][i] + of_workers[1][i]) * 0.5f;
      client.push_dense(0, gradients.const_pointers(), 0.125f).wait();
      client.push_sparse(0, batch, sum.data(), 0.125f, Rows::kUnique).wait();
    }
    EXPECT_EQ(read_model(client, alone, all_ids()), result) << rule->text();
    client.goodbye();
  }
}

// However workers are delayed, sync training gives the same bits.
TEST(Server, SyncDoesNotDependOnTiming) {
  const JobSpec job = small_job(3, 2, Mode::kSync, momentum());
  Model results[2];
  for (int time = 0; time < 2; ++time) {
    Servers servers(job);
    Values first(job.dense[0]);
    std::vector<std::thread> workers;
    for (int w = 0; w < 3; ++w)
      workers.emplace_back([&, w] {
        Client client(servers.client(w));
        if (w == 2) client.set_dense(0, first.const_pointers()).wait();
        for (int step = 0; step < 10; ++step) {
          const int delay = static_cast<int>(
              mix(static_cast<uint64_t>(step), static_cast<uint64_t>(w + 5 * time)) % 4);
          std::this_thread::sleep_for(milliseconds(delay));
          train_step(client, job, step);
        }
        client.barrier();
        if (w == 1) results[time] = read_model(client, job, all_ids());
        client.goodbye();
      });
    for (std::thread& worker : workers) worker.join();
  }
  EXPECT_EQ(results[0], results[1]);
}

// A worker that has fewer batches leaves; the others average among themselves.
TEST(Server, SyncGoesOnWithoutWorkersThatHaveLeft) {
  const JobSpec job = small_job(2, 1, Mode::kSync, add_rule());
  Servers servers(job);
  Values zeros(job.dense[0]), ones(job.dense[0]);
  for (auto& p : zeros.params) std::fill(p.begin(), p.end(), 0.0f);
  for (auto& p : ones.params) std::fill(p.begin(), p.end(), 1.0f);
  Client a(servers.client(0)), b(servers.client(1));
  a.set_dense(0, zeros.const_pointers()).wait();
  a.push_dense(0, ones.const_pointers(), 0).wait();
  Values pulled(job.dense[0]);
  Ticket waits = a.pull_dense(0, pulled.pointers());
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(waits.done());
  b.goodbye();
  waits.wait();
  EXPECT_EQ(pulled.params[1][0], 1);
  a.goodbye();
  servers.join();
}

TEST(Server, StalenessIsBounded) {
  JobSpec job = small_job(2, 1, Mode::kAsync, add_rule());
  job.staleness = 2;
  Servers servers(job);
  Client a(servers.client(0)), b(servers.client(1));
  const auto ids = batch_of({1}, 1);
  const std::vector<float> one(3, 1);
  std::vector<float> row(3);
  for (int i = 0; i < 2; ++i) a.push_sparse(0, ids, one.data(), 0).wait();
  a.pull_sparse(0, ids, row.data()).wait();
  a.push_sparse(0, ids, one.data(), 0).wait();
  Ticket waits = a.pull_sparse(0, ids, row.data());
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(waits.done());
  b.push_sparse(0, ids, one.data(), 0).wait();
  waits.wait();
  a.goodbye();
  b.goodbye();
}

TEST(Server, BarrierWaitsForAll) {
  const JobSpec job = small_job(3, 2, Mode::kAsync, sgd());
  Servers servers(job);
  std::atomic<int> before{0};
  std::vector<std::thread> workers;
  for (int w = 0; w < 3; ++w)
    workers.emplace_back([&, w] {
      Client client(servers.client(w));
      for (int round = 1; round <= 3; ++round) {
        std::this_thread::sleep_for(milliseconds(10 * w));
        ++before;
        client.barrier();
        EXPECT_GE(before, 3 * round);
        client.barrier();
      }
      client.goodbye();
    });
  for (std::thread& worker : workers) worker.join();
  servers.join();
}

struct SnapshotTest : ::testing::Test {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("fleetx_ps_" + std::to_string(getpid()));
  ~SnapshotTest() override { std::filesystem::remove_all(folder); }
};

TEST_F(SnapshotTest, SavedByTwoServersLoadedByThree) {
  const JobSpec two = small_job(1, 2, Mode::kAsync, counting());
  const JobSpec three = small_job(1, 3, Mode::kAsync, counting());
  Model saved, continued[2];
  Values first(two.dense[0]);
  {
    Servers servers(two);
    Client client(servers.client(0));
    client.set_dense(0, first.const_pointers()).wait();
    for (int step = 0; step < 5; ++step) train_step(client, two, step);
    client.save(folder.string());
    client.save(folder.string());  // replaces the first one
    saved = read_model(client, two, all_ids());
    train_step(client, two, 5);
    continued[0] = read_model(client, two, all_ids());
    client.goodbye();
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 3);
  for (const bool at_start : {true, false}) {
    Servers servers(three, nullptr, at_start ? folder.string() : "");
    Client client(servers.client(0));
    if (!at_start) client.load(folder.string());
    // Loaded values are not set again.
    client.set_dense(0, first.const_pointers()).wait();
    EXPECT_EQ(read_model(client, three, all_ids()), saved);
    train_step(client, three, 5);
    continued[1] = read_model(client, three, all_ids());
    EXPECT_EQ(continued[0], continued[1]) << "states and scalars";
    client.goodbye();
  }
}

TEST_F(SnapshotTest, RefusesWhatIsDamagedOrOfAnotherModel) {
  const JobSpec job = small_job(1, 2, Mode::kAsync, momentum());
  Servers servers(job);
  Client client(servers.client(0));
  Values first(job.dense[0]);
  client.set_dense(0, first.const_pointers()).wait();
  train_step(client, job, 0);
  client.save(folder.string());
  const auto load = [&](const JobSpec& other) { Servers fresh(other, nullptr, folder.string()); };
  const auto bad = Error::Kind::kInvalidArgument;
  JobSpec other = job;
  other.sparse[0].dim = 4;
  expect_error(bad, {"'rows'", "rows of 3 values", "another model"}, [&] { load(other); });
  other = small_job(1, 2, Mode::kAsync, sgd());
  expect_error(bad, {"another optimizer"}, [&] { load(other); });
  other = job;
  other.dense[0].params[0].name = "v";
  expect_error(bad, {"'w'", "another model"}, [&] { load(other); });
  expect_error(bad, {"no snapshot"}, [&] { Servers fresh(job, nullptr, "/tmp"); });
  std::filesystem::path part;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".part") part = entry.path();
  const auto size = std::filesystem::file_size(part);
  {
    std::FILE* file = std::fopen(part.c_str(), "r+b");
    std::fseek(file, 60, SEEK_SET);
    std::fputc(0x55, file);
    std::fclose(file);
  }
  expect_error(Error::Kind::kCorrupt, {part.filename().string(), "damaged"}, [&] { load(job); });
  std::filesystem::resize_file(part, size - 3);
  expect_error(Error::Kind::kCorrupt, {part.filename().string()}, [&] { load(job); });
  std::filesystem::remove(part);
  expect_error(bad, {"is missing"}, [&] { load(job); });
  expect_error(bad, {"server"}, [&] { client.save("/proc/no"); });
  client.goodbye();
}

TEST(Server, ShrinkDropsSmallRows) {
  JobSpec job = small_job(1, 2, Mode::kAsync, add_rule());
  job.sparse[0].initializer = {};
  Servers servers(job);
  Client client(servers.client(0));
  const auto ids = batch_of(all_ids(), 2);
  std::vector<float> rows(90, 0.01f);
  for (size_t i = 0; i < 10; ++i) rows[3 * i + 1] = -2;
  client.push_sparse(0, ids, rows.data(), 0).wait();
  EXPECT_EQ(client.shrink(0.5f), 20);
  EXPECT_EQ(client.shrink(0.5f), 0);
  client.goodbye();
}

}  // namespace
}  // namespace fleetx::ps
