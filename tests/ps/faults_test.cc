#include <gtest/gtest.h>
#include <sys/socket.h>

#include "fleetx/base/rng.h"
#include "fleetx/comm/socket.h"
#include "fleetx/ps/identity.h"
#include "fleetx/ps/wire.h"
#include "tests/ps/job.h"
#include "tests/support/expect_error.h"

namespace fleetx::ps {
namespace {

using std::chrono::milliseconds;
using testing::expect_error;

// Pushes that add known numbers; what arrives in the end.
std::vector<float> train(Client& client, const JobSpec& job) {
  Values ones(job.dense[0]);
  Values values(job.dense[0]);
  client.set_dense(0, values.const_pointers()).wait();
  std::vector<int64_t> ids;
  std::vector<float> rows;
  for (int step = 0; step < 12; ++step) {
    ids.clear();
    for (int i = 0; i < 20; ++i) ids.push_back((step + i) % 25);
    const auto batch = std::make_shared<const IdBatch>(ids, job.servers);
    rows.assign(60, 0);
    client.pull_sparse(0, batch, rows.data()).wait();
    client.pull_dense(0, values.pointers()).wait();
    client.push_sparse(0, batch, std::vector<float>(60, 1.0f).data(), 0);
    client.push_dense(0, ones.const_pointers(), 0);
  }
  client.flush();
  ids.clear();
  for (int i = 0; i < 25; ++i) ids.push_back(i);
  rows.resize(75);
  client.pull_sparse(0, std::make_shared<const IdBatch>(ids, job.servers), rows.data()).wait();
  client.pull_dense(0, values.pointers()).wait();
  for (const auto& p : values.params) rows.insert(rows.end(), p.begin(), p.end());
  return rows;
}

// The connection breaks once, at any place of any message in either direction.
TEST(Faults, EveryPushIsAppliedOnce) {
  const JobSpec job = small_job(1, 1, Mode::kAsync, add_rule());
  std::vector<float> expected;
  int64_t passed[2] = {0, 0}, begin[2] = {0, 0}, repeated = 0;
  const auto run = [&](const std::function<void(Proxy&)>& prepare) {
    Servers servers(job);
    Proxy proxy(servers.endpoints()[0]);
    ClientOptions options = servers.client(0);
    options.servers = {proxy.endpoint()};
    Client client(options);
    if (begin[0] == 0)
      for (int d = 0; d < 2; ++d) begin[d] = proxy.passed(static_cast<Proxy::From>(d));
    prepare(proxy);
    const std::vector<float> result = train(client, job);
    for (int d = 0; d < 2; ++d) passed[d] = proxy.passed(static_cast<Proxy::From>(d));
    const ServerStats stats = client.stats()[0];
    EXPECT_EQ(stats.pushes, 24);
    repeated += stats.repeated;
    client.goodbye();
    return std::pair(result, proxy.broken());
  };
  expected = run([](Proxy&) {}).first;
  EXPECT_EQ(repeated, 0);
  const int64_t end[2] = {passed[0], passed[1]};
  constexpr int kPlaces = 30;
  for (const auto from : {Proxy::From::kWorker, Proxy::From::kServer})
    for (int place = 0; place < kPlaces; ++place) {
      const auto d = static_cast<size_t>(from);
      const int64_t at = begin[d] + (end[d] - begin[d] - 100) * place / kPlaces;
      const auto [result, broken] = run([&](Proxy& p) { p.break_after(from, at); });
      EXPECT_EQ(broken, 1) << at;
      EXPECT_EQ(result, expected) << "broken after " << at << " bytes in direction " << d;
    }
  EXPECT_GT(repeated, 0) << "no push was ever sent again";
}

TEST(Faults, WrongSecretIsNamed) {
  const JobSpec job = small_job(1, 1, Mode::kAsync, sgd());
  Servers servers(job);
  ClientOptions options = servers.client(0);
  options.secret = "wrong";
  expect_error(Error::Kind::kComm, {"parameter server 0", servers.endpoints()[0], "secret"},
               [&] { Client client(options); });
  options = servers.client(0);
  options.job_id = "another";
  expect_error(Error::Kind::kComm, {"secret"}, [&] { Client client(options); });
  expect_error(Error::Kind::kComm, {"secret"},
               [&] { read_stats(servers.endpoints()[0], "wrong", "default", milliseconds(5000)); });
  EXPECT_EQ(read_stats(servers.endpoints()[0], "s3cret", "default", milliseconds(5000)).servers, 1);
}

TEST(Faults, PortThatIsHeldIsNamed) {
  const JobSpec job = small_job(1, 1, Mode::kAsync, sgd());
  Servers servers(job);
  expect_error(Error::Kind::kInvalidArgument, {servers.endpoints()[0], "in use"}, [&] {
    Server second({.job = job, .endpoint = servers.endpoints()[0], .secret = "s3cret"});
  });
}

TEST(Faults, DifferentProgramsAreTold) {
  const JobSpec job = small_job(1, 2, Mode::kAsync, sgd());
  Servers servers(job);
  ClientOptions options = servers.client(0);
  options.job.sparse[0].dim = 8;
  expect_error(Error::Kind::kInvalidArgument, {"another program", "sparse rows 3", "sparse rows 8"},
               [&] { Client client(options); });
  options = servers.client(0);
  std::swap(options.servers[0], options.servers[1]);
  expect_error(Error::Kind::kInvalidArgument, {"different lists of servers"},
               [&] { Client client(options); });
}

TEST(Faults, AbsentServerIsNamed) {
  const JobSpec job = small_job(1, 1, Mode::kAsync, sgd());
  Fd held = comm::listen_on({"127.0.0.1", 0});
  const std::string endpoint = to_string(comm::local_endpoint(held.get()));
  held.reset();
  ClientOptions options{.job = job, .servers = {endpoint}, .secret = "s3cret"};
  options.connect_timeout = milliseconds(300);
  expect_error(Error::Kind::kTimeout, {"parameter server 0", endpoint, "refused"},
               [&] { Client client(options); });
}

// While a worker waits for a server that starts late, the others do not take it for lost.
TEST(Faults, AWorkerThatWaitsForAServerIsNotLost) {
  const JobSpec job = small_job(1, 2, Mode::kSync, sgd());
  Fd held = comm::listen_on({"127.0.0.1", 0});
  const std::string late = to_string(comm::local_endpoint(held.get()));
  held.reset();
  Server first({.job = job, .endpoint = "127.0.0.1:0", .secret = "s3cret"});
  std::thread serving([&] { first.run(); });
  std::thread waiting([&] {
    Client client({.job = job, .servers = {first.endpoint(), late}, .secret = "s3cret"});
    client.goodbye();
  });
  const double end = 5;  // more than the silence after which it would be lost
  std::string worst = "connected";
  for (int i = 0; i < static_cast<int>(end * 10); ++i) {
    std::this_thread::sleep_for(milliseconds(100));
    if (i > 10 && first.stats().workers[0].state != "connected")
      worst = first.stats().workers[0].state;
  }
  EXPECT_EQ(worst, "connected");
  Server second({.job = job, .index = 1, .endpoint = late, .secret = "s3cret"});
  second.run();
  waiting.join();
  serving.join();
}

TEST(Faults, ServerThatEndsIsNamed) {
  const JobSpec job = small_job(1, 2, Mode::kAsync, sgd());
  auto servers = std::make_unique<Servers>(job);
  ClientOptions options = servers->client(0);
  options.reconnect_timeout = milliseconds(500);
  Client client(options);
  const auto ids = std::make_shared<const IdBatch>(std::vector<int64_t>{1, 2}, 2);
  std::vector<float> rows(6);
  client.pull_sparse(0, ids, rows.data()).wait();
  servers.reset();
  const auto begin = std::chrono::steady_clock::now();
  expect_error(Error::Kind::kComm, {"parameter server", "cannot be reached"},
               [&] { client.pull_sparse(0, ids, rows.data()).wait(); });
  expect_error(Error::Kind::kComm, {"parameter server", "cannot be reached"}, [&] {
    client.push_sparse(0, ids, rows.data(), 0);
    client.flush();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(Faults, SyncNamesAWorkerThatIsLost) {
  const JobSpec job = small_job(2, 1, Mode::kSync, sgd());
  Servers servers(job, [](ServerOptions& o) {
    o.worker_timeout = milliseconds(300);
    o.orphan_timeout = milliseconds(300);
  });
  {
    Client a(servers.client(0));
    auto b = std::make_unique<Client>(servers.client(1));
    Values values(job.dense[0]);
    a.set_dense(0, values.const_pointers()).wait();
    a.push_dense(0, values.const_pointers(), 0.5f).wait();
    b.reset();  // without goodbye
    expect_error(Error::Kind::kComm, {"worker 1 is lost"},
                 [&] { a.pull_dense(0, values.pointers()).wait(); });
    expect_error(Error::Kind::kComm, {"worker 1 is lost"}, [&] { a.barrier(); });
    EXPECT_EQ(a.stats()[0].workers[1].state, "lost");
    a.goodbye();
  }
  servers.join();
  EXPECT_NE(servers.error(0).find("no workers left"), std::string::npos) << servers.error(0);
}

TEST(Faults, AsyncGoesOnWithoutALostWorkerAndTakesItBack) {
  JobSpec job = small_job(2, 1, Mode::kAsync, sgd());
  job.staleness = 1;
  Servers servers(job, [](ServerOptions& o) { o.worker_timeout = milliseconds(300); });
  Client a(servers.client(0));
  auto b = std::make_unique<Client>(servers.client(1));
  const auto ids = std::make_shared<const IdBatch>(std::vector<int64_t>{1, 2}, 1);
  std::vector<float> rows(6);
  b->push_sparse(0, ids, rows.data(), 0).wait();
  b.reset();
  for (int step = 0; step < 4; ++step) {
    a.push_sparse(0, ids, rows.data(), 0).wait();
    a.pull_sparse(0, ids, rows.data()).wait();
  }
  a.barrier();
  b = std::make_unique<Client>(servers.client(1));
  EXPECT_EQ(a.stats()[0].workers[1].state, "connected");
  a.goodbye();
  b->goodbye();
  servers.join();
  EXPECT_EQ(servers.error(0), "");
}

// Two processes with one number: the second one is told, and the first one goes on as if nothing
// had been. Without a first one that is alive, or after it, the number is free.
TEST(Faults, AWorkerWithTheNumberOfAnotherIsRefused) {
  for (const Mode mode : {Mode::kSync, Mode::kAsync}) {
    const JobSpec job = small_job(1, 2, mode, add_rule());
    Servers servers(job);
    auto first = std::make_unique<Client>(servers.client(0));
    Values ones(job.dense[0], 1.0f);
    first->push_dense(0, ones.const_pointers(), 0);
    first->flush();
    expect_error(Error::Kind::kInvalidArgument,
                 {"worker 0", "another process", "PADDLE_TRAINER_ID"},
                 [&] { Client second(servers.client(0)); });
    first->push_dense(0, ones.const_pointers(), 0);
    first->flush();
    EXPECT_EQ(first->stats()[0].pushes, 2);
    if (mode == Mode::kAsync) {
      first.reset();
      first = std::make_unique<Client>(servers.client(0));
    }
    first->goodbye();
    servers.join();
    EXPECT_EQ(servers.error(0), "");
  }
}

// Whoever can connect may send anything; the server says no and serves the others.
TEST(Faults, MalformedFramesAreRefused) {
  const JobSpec job = small_job(1, 1, Mode::kAsync, sgd());
  Servers servers(job);
  Client client(servers.client(0));
  const comm::Endpoint endpoint = comm::parse_endpoint(servers.endpoints()[0]);
  const auto deadline = comm::after(milliseconds(5000));
  const auto ended = [&](int fd) {
    char bytes[4096];
    for (;;) {
      ssize_t n = 0;
      while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0) {
      }
      if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return true;
      if (comm::Clock::now() > deadline) return false;
      std::this_thread::sleep_for(milliseconds(5));
    }
  };
  {  // without proof
    const Fd fd = comm::connect_to(endpoint, deadline);
    comm::send_all(fd.get(), std::string(2000, 'x'), deadline);
    EXPECT_TRUE(ended(fd.get()));
  }
  using wire::Header;
  using wire::Kind;
  const Header bad[] = {{.kind = Kind::kPullSparse, .count = 1, .bytes = 8},  // no hello yet
                        {.kind = Kind::kHello, .bytes = uint64_t{1} << 40},
                        {.kind = Kind::kReply},
                        {.kind = Kind::kStats, .bytes = 100}};
  for (const Header& header : bad) {
    const auto channel = comm::connect_to_rank(endpoint, identity_of("s3cret", "default"),
                                               kFirstWorkerRank, kServerRank, deadline, [] {});
    const wire::HeaderBytes bytes = wire::encode(header);
    comm::send_all(channel->fd(), {bytes.data(), bytes.size()}, deadline);
    EXPECT_TRUE(ended(channel->fd()));
  }
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto channel = comm::connect_to_rank(endpoint, identity_of("s3cret", "default"),
                                               kObserverRank, kServerRank, deadline, [] {});
    wire::HeaderBytes bytes = wire::encode(
        Header{.kind = static_cast<Kind>(1 + seed % 17), .table = 0, .count = 3, .bytes = 24});
    for (int i = 0; i < 3; ++i)
      bytes[mix(seed, static_cast<uint64_t>(i)) % bytes.size()] ^=
          static_cast<char>(1 << (seed % 8));
    comm::send_all(channel->fd(), {bytes.data(), bytes.size()}, deadline);
  }
  std::vector<float> rows(3);
  client.pull_sparse(0, std::make_shared<const IdBatch>(std::vector<int64_t>{1}, 1), rows.data())
      .wait();
  client.goodbye();
}

}  // namespace
}  // namespace fleetx::ps
