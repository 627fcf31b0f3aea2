// Steps of sync mode: who waits for whom. (Through sockets: server_test.cc.)
#include "fleetx/ps/table_service.h"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "tests/ps/job.h"

namespace fleetx::ps {
namespace {

std::shared_ptr<const IdBatch> batch_of(std::vector<int64_t> ids) {
  return std::make_shared<const IdBatch>(ids, 1);
}

JobSpec sync_job(int workers) {
  JobSpec job = small_job(workers, 1, Mode::kSync, add_rule());
  job.sparse[0].initializer = {};
  return job;
}

class Answers final : public Peer {
 public:
  void send(wire::Header header, Payload) override { kinds.push_back(header.kind); }
  std::vector<wire::Kind> kinds;
};

TEST(TableService, NamesWhomPullsWaitFor) {
  using std::chrono::milliseconds;
  const JobSpec job = sync_job(3);
  PayloadPool pool;
  TableService tables(job, 0, 1, pool);
  const auto peer = std::make_shared<Answers>();
  const auto push = [&](int worker) {
    tables.push({peer, {.kind = wire::Kind::kPushSparse}, worker}, Payload());
  };
  const auto pull = [&](int worker) {
    tables.pull({peer, {.kind = wire::Kind::kPullSparse, .wait = 1}, worker}, Payload());
  };
  push(1);
  EXPECT_TRUE(tables.long_waits(milliseconds(0)).empty());
  pull(1);
  EXPECT_TRUE(tables.long_waits(milliseconds(60'000)).empty());
  const std::vector<std::string> told = tables.long_waits(milliseconds(0));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0],
            "table 'rows', step 1: pulls of workers 1 wait for the pushes of workers 0, 2");
  EXPECT_TRUE(tables.long_waits(milliseconds(0)).empty()) << "once";
  push(0);
  push(2);
  EXPECT_TRUE(tables.long_waits(milliseconds(0)).empty());
  EXPECT_EQ(peer->kinds.size(), 4u) << "three pushes and the pull are answered";
  push(0);
  pull(0);
  EXPECT_EQ(tables.long_waits(milliseconds(0)),
            (std::vector<std::string>{
                "table 'rows', step 2: pulls of workers 0 wait for the pushes of workers 1, 2"}));
}

// One worker has two batches, the other five; then they compute something together, outside of the
// servers, and train on.
TEST(TableService, WorkersWithUnequalNumbersOfBatchesMeet) {
  const JobSpec job = sync_job(2);
  Servers servers(job);
  Client a(servers.client(0)), b(servers.client(1));
  std::barrier<> together(2);
  const auto ids = batch_of({7});
  const std::vector<float> one{1, 1, 1}, three{3, 3, 3};
  const auto step = [&](Client& client, const std::vector<float>& gradient) {
    std::vector<float> row(3);
    client.push_sparse(0, ids, gradient.data(), 1).wait();
    client.pull_sparse(0, ids, row.data()).wait();
    return row[0];
  };
  std::vector<float> of_a, of_b;
  std::thread short_one([&] {
    for (int pass = 0; pass < 3; ++pass) {
      for (int i = 0; i < 2; ++i) of_a.push_back(step(a, one));
      a.meet();
      together.arrive_and_wait();
    }
  });
  for (int pass = 0; pass < 3; ++pass) {
    for (int i = 0; i < 5; ++i) of_b.push_back(step(b, three));
    b.meet();
    together.arrive_and_wait();
  }
  short_one.join();
  // Averages of both for two steps, then those of the second worker for three.
  EXPECT_EQ(of_b, (std::vector<float>{2, 4, 7, 10, 13, 15, 17, 20, 23, 26, 28, 30, 33, 36, 39}));
  EXPECT_EQ(of_a, (std::vector<float>{2, 4, 15, 17, 28, 30}));
  // A barrier is a meeting, too.
  std::thread waits([&] { a.barrier(); });
  EXPECT_EQ(step(b, three), 42);
  b.barrier();
  waits.join();
  a.goodbye();
  b.goodbye();
}

}  // namespace
}  // namespace fleetx::ps
