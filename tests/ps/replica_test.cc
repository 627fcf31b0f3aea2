// Servers with copies: one dies, workers go on with its copy, and nothing is lost.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>
#include <thread>

#include "fleetx/ps/ask_server.h"
#include "fleetx/ps/identity.h"
#include "fleetx/ps/server_link.h"
#include "tests/ps/job.h"
#include "tests/ps/process.h"
#include "tests/support/certificates.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::ps {
namespace {

constexpr int kWorkers = 2, kSteps = 120, kRows = 15;

// Two servers as processes, each with the copy of the other.
struct Chain {
  explicit Chain(const std::string& mode) : mode(mode) {
    for (size_t s = 0; s < 2; ++s) start(s, "copied_by:");
  }
  void start(size_t s, const std::string& how) {
    servers[s] = std::make_unique<Process>(
        std::vector<std::string>{"server", std::to_string(s), endpoints[s], mode,
                                 std::to_string(kWorkers), "2", "-", how + endpoints[1 - s]},
        folder / ("log" + std::to_string(s) + "." + std::to_string(starts++)));
  }
  void kill(size_t s) const {
    servers[s]->signal(SIGKILL);
    servers[s]->wait();
  }
  // One that was killed comes back, and is the copy of the other.
  void start_again(size_t s) {
    start(s, "blank:");
    EXPECT_TRUE(servers[s]->says("is complete")) << logs();
  }
  std::string logs() const { return servers[0]->output() + "---\n" + servers[1]->output(); }
  JobSpec job() const {
    return small_job(kWorkers, 2, mode == "sync" ? Mode::kSync : Mode::kAsync, add_rule());
  }
  ClientOptions client(int worker) const {
    return {.job = job(),
            .worker = worker,
            .servers = endpoints,
            .secret = "s3cret",
            .connect_timeout = std::chrono::seconds(20)};
  }
  const std::string mode;
  int starts = 0;
  testing::TempDir folder;
  std::vector<std::string> endpoints = free_endpoints(2);
  std::unique_ptr<Process> servers[2];
};

struct Result {
  std::vector<float> values;
  double longest = 0;  // step, in seconds
};

// What a worker pushes depends on the step, the worker and what it has pulled.
Result train(Client& client, const JobSpec& job, const std::function<void(int step)>& at) {
  Values values(job.dense[0]);
  if (client.worker() == 0) client.set_dense(0, values.const_pointers()).wait();
  std::vector<int64_t> all(kRows);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i) * 77;
  const auto ids = std::make_shared<const IdBatch>(all, job.servers);
  std::vector<float> rows(3 * kRows);
  Result result;
  for (int step = 0; step < kSteps; ++step) {
    at(step);
    const double begin = now();
    client.pull_dense(0, values.pointers()).wait();
    client.pull_sparse(0, ids, rows.data()).wait();
    const float factor = -0.01f * static_cast<float>(1 + (step + client.worker()) % 3);
    for (auto& p : values.params)
      for (float& x : p) x *= factor;
    for (float& x : rows) x *= factor;
    client.push_dense(0, values.const_pointers(), 0).wait();
    client.push_sparse(0, ids, rows.data(), 0).wait();
    result.longest = std::max(result.longest, now() - begin);
  }
  client.flush();
  client.barrier();
  client.pull_dense(0, values.pointers()).wait();
  client.pull_sparse(0, ids, rows.data()).wait();
  for (const auto& p : values.params) result.values.insert(result.values.end(), p.begin(), p.end());
  result.values.insert(result.values.end(), rows.begin(), rows.end());
  return result;
}

// The result of worker 0. A signal goes to a server at a step of worker 0; 0: none.
Result run(const std::string& mode, int number, size_t victim, int when) {
  Chain chain(mode);
  const JobSpec job = chain.job();
  Result first;
  {
    Client a(chain.client(0)), b(chain.client(1));
    std::thread other([&] {
      train(b, job, [](int) {});
      b.goodbye();
    });
    first = train(a, job, [&](int step) {
      if (number != 0 && step == when) chain.servers[victim]->signal(number);
    });
    a.goodbye();
    other.join();
  }
  const auto log = [&](size_t s) { return chain.servers[s]->output(); };
  if (number != 0) {
    EXPECT_NE(log(1 - victim).find("takes its place"), std::string::npos) << log(1 - victim);
    chain.servers[victim]->signal(SIGKILL);
    chain.servers[victim]->wait();
    EXPECT_EQ(chain.servers[1 - victim]->wait(), 0) << log(1 - victim);
  } else {
    for (size_t s = 0; s < 2; ++s) EXPECT_EQ(chain.servers[s]->wait(), 0) << log(s);
  }
  return first;
}

TEST(Replica, SyncGoesOnBitForBitWithTheCopy) {
  const Result whole = run("sync", 0, 0, 0);
  ASSERT_FALSE(whole.values.empty());
  for (const int number : {SIGKILL, SIGSTOP})
    for (const size_t victim : {size_t{0}, size_t{1}}) {
      const Result broken = run("sync", number, victim, number == SIGKILL ? 40 : 70);
      EXPECT_EQ(broken.values, whole.values) << "server " << victim << ", signal " << number;
      EXPECT_LT(broken.longest, 5) << "server " << victim << ", signal " << number;
    }
}

TEST(Replica, TheSameOverTls) {
  const testing::Certificates certificates;
  if (!certificates.made()) GTEST_SKIP() << "the command openssl is not installed";
  const Result plain = run("sync", 0, 0, 0);
  certificates.use("a");
  EXPECT_EQ(run("sync", SIGKILL, 1, 40).values, plain.values);
}

// Every push arrives once, also where the server had passed it on but not confirmed it.
TEST(Replica, AsyncLosesNothing) {
  for (const size_t victim : {size_t{0}, size_t{1}}) {
    Chain chain("async");
    const JobSpec job = chain.job();
    Values zeros(job.dense[0]), ones(job.dense[0]);
    for (auto& p : zeros.params) std::ranges::fill(p, 0.0f);
    for (auto& p : ones.params) std::ranges::fill(p, 1.0f);
    std::vector<std::thread> threads;
    std::atomic<int> pushed{0};
    Client a(chain.client(0)), b(chain.client(1));
    a.set_dense(0, zeros.const_pointers()).wait();
    for (Client* client : {&a, &b})
      threads.emplace_back([&, client] {
        for (int i = 0; i < 500; ++i, ++pushed) client->push_dense(0, ones.const_pointers(), 0);
        client->flush();
      });
    while (pushed < 300) std::this_thread::yield();
    chain.servers[victim]->signal(SIGKILL);
    for (std::thread& thread : threads) thread.join();
    a.pull_dense(0, zeros.pointers()).wait();
    for (const auto& p : zeros.params)
      for (const float x : p) EXPECT_EQ(x, 1000) << chain.servers[1 - victim]->output();
    a.goodbye();
    b.goodbye();
    EXPECT_EQ(chain.servers[1 - victim]->wait(), 0) << chain.servers[1 - victim]->output();
  }
}

// A worker that is started (again) when the copy is in the server's place finds it there.
TEST(Replica, AWorkerThatStartsLaterFindsTheCopy) {
  for (const size_t victim : {size_t{0}, size_t{1}}) {
    Chain chain("async");
    const JobSpec job = chain.job();
    Values ones(job.dense[0]), values(job.dense[0]);
    for (auto& p : ones.params) std::ranges::fill(p, 1.0f);
    for (auto& p : values.params) std::ranges::fill(p, 0.0f);
    Client a(chain.client(0));
    auto b = std::make_unique<Client>(chain.client(1));
    a.set_dense(0, values.const_pointers()).wait();
    const auto push = [&](Client& client) {
      for (int i = 0; i < 10; ++i) client.push_dense(0, ones.const_pointers(), 0).wait();
    };
    push(*b);
    b.reset();  // without goodbye
    chain.servers[victim]->signal(SIGKILL);
    chain.servers[victim]->wait();
    push(a);
    ASSERT_TRUE(chain.servers[1 - victim]->says("takes its place"));
    b = std::make_unique<Client>(chain.client(1));
    push(*b);
    b->pull_dense(0, values.pointers()).wait();
    for (const auto& p : values.params)
      for (const float x : p) EXPECT_EQ(x, 30) << chain.servers[1 - victim]->output();
    a.goodbye();
    b->goodbye();
    EXPECT_EQ(chain.servers[1 - victim]->wait(), 0) << chain.servers[1 - victim]->output();
  }
}

// Steps are short, so that some fall into the time in which the state is on its way.
void take_a_while() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

// A server dies, comes back as the copy of what took its place; then the other dies, too.
TEST(Replica, ACopyIsMadeAgainSoThatASecondLossLosesNothing) {
  const Result whole = run("sync", 0, 0, 0);
  for (const size_t first : {size_t{0}, size_t{1}}) {
    Chain chain("sync");
    const JobSpec job = chain.job();
    Result broken;
    {
      Client a(chain.client(0)), b(chain.client(1));
      std::thread other([&] {
        train(b, job, [](int) { take_a_while(); });
        b.goodbye();
      });
      std::thread restart;
      broken = train(a, job, [&](int step) {
        take_a_while();
        if (step == 20) chain.kill(first);
        if (step == 30) restart = std::thread([&] { chain.start_again(first); });
        if (step == 80) restart.join();
        if (step == 90) chain.kill(1 - first);  // replies since then have told of the copy
        if (step == 100) restart = std::thread([&] { chain.start_again(1 - first); });
        if (step == 115) restart.join();
      });
      a.goodbye();
      other.join();
    }
    EXPECT_EQ(broken.values, whole.values) << chain.logs();
    EXPECT_LT(broken.longest, 5);
    for (size_t s = 0; s < 2; ++s) EXPECT_EQ(chain.servers[s]->wait(), 0) << chain.logs();
  }
}

// The server dies before any reply could tell the workers that it has a copy again.
TEST(Replica, AWorkerThatWasNotToldOfTheNewCopyFindsIt) {
  for (const size_t first : {size_t{0}, size_t{1}}) {
    Chain chain("async");
    const JobSpec job = chain.job();
    Values ones(job.dense[0]), values(job.dense[0]);
    for (auto& p : ones.params) std::ranges::fill(p, 1.0f);
    for (auto& p : values.params) std::ranges::fill(p, 0.0f);
    Client a(chain.client(0)), b(chain.client(1));
    a.set_dense(0, values.const_pointers()).wait();
    const auto push = [&] {
      for (Client* client : {&a, &b})
        for (int i = 0; i < 10; ++i) client->push_dense(0, ones.const_pointers(), 0).wait();
    };
    push();
    chain.kill(first);
    push();
    chain.start_again(first);
    chain.kill(1 - first);
    push();
    b.pull_dense(0, values.pointers()).wait();
    for (const auto& p : values.params)
      for (const float x : p) EXPECT_EQ(x, 60) << chain.logs();
    a.goodbye();
    b.goodbye();
    EXPECT_EQ(chain.servers[first]->wait(), 0) << chain.logs();
  }
}

// Says hello to the copy of a server in the name of its worker, as another process of it: then what
// the server passes on does not follow what the copy knows, and the server goes on without it.
void put_out_of_step(const Chain& chain, size_t server) {
  const comm::TcpIdentity identity = identity_of("s3cret", "default");
  const ServerAnswer copy =
      ask_server(chain.endpoints[1 - server], identity, wire::Kind::kCopy, std::chrono::seconds(1));
  LinkOptions options;
  options.identity = identity;
  options.server = static_cast<int>(server);
  options.hello = {.start = 77,
                   .server = static_cast<uint32_t>(server),
                   .job = chain.job().text(),
                   .forwarded = 1};
  options.endpoint = comm::parse_endpoint(copy.text);
  const Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  ServerLink(options, epoll.get()).connect(comm::after(std::chrono::seconds(1)));
}

TEST(Replica, ACopyThatHasMissedChangesIsMadeAgain) {
  Chain chain("async");
  const JobSpec job = chain.job();
  Values ones(job.dense[0]), values(job.dense[0]);
  for (auto& p : ones.params) std::ranges::fill(p, 1.0f);
  for (auto& p : values.params) std::ranges::fill(p, 0.0f);
  const auto ids = std::make_shared<const IdBatch>(std::vector<int64_t>{1, 2, 3, 4, 5}, 2);
  std::vector<float> rows(15, 1.0f), first(15), last(15);
  Client a(chain.client(0)), b(chain.client(1));
  a.set_dense(0, values.const_pointers()).wait();
  a.pull_sparse(0, ids, first.data()).wait();
  const auto push = [&] {
    for (Client* client : {&a, &b})
      for (int i = 0; i < 10; ++i) {
        client->push_dense(0, ones.const_pointers(), 0).wait();
        client->push_sparse(0, ids, rows.data(), 0).wait();
      }
  };
  push();
  put_out_of_step(chain, 0);
  push();
  ASSERT_TRUE(chain.servers[0]->says("goes on without its copy")) << chain.logs();
  ASSERT_TRUE(chain.servers[1]->says("has missed changes")) << chain.logs();
  ASSERT_TRUE(chain.servers[0]->says("has a copy again")) << chain.logs();
  push();
  chain.kill(0);
  push();
  b.pull_dense(0, values.pointers()).wait();
  b.pull_sparse(0, ids, last.data()).wait();
  for (const auto& p : values.params)
    for (const float x : p) EXPECT_EQ(x, 80) << chain.logs();
  for (size_t i = 0; i < last.size(); ++i)
    EXPECT_NEAR(last[i], first[i] + 80, 1e-4) << chain.logs();
  a.goodbye();
  b.goodbye();
  EXPECT_EQ(chain.servers[1]->wait(), 0) << chain.logs();
}

// Pushes go on all the time; each is applied once.
TEST(Replica, AsyncLosesNothingWhenServersComeBack) {
  Chain chain("async");
  const JobSpec job = chain.job();
  Values zeros(job.dense[0]), ones(job.dense[0]);
  for (auto& p : zeros.params) std::ranges::fill(p, 0.0f);
  for (auto& p : ones.params) std::ranges::fill(p, 1.0f);
  std::vector<std::thread> threads;
  std::atomic<bool> enough{false};
  std::atomic<int> pushed{0};
  Client a(chain.client(0)), b(chain.client(1));
  a.set_dense(0, zeros.const_pointers()).wait();
  for (Client* client : {&a, &b})
    threads.emplace_back([&, client] {
      for (; !enough; ++pushed) client->push_dense(0, ones.const_pointers(), 0);
      client->flush();
    });
  const auto some_more = [&] {
    for (const int until = pushed + 200; pushed < until;) std::this_thread::yield();
  };
  some_more();
  for (const size_t victim : {size_t{0}, size_t{1}, size_t{0}}) {
    chain.kill(victim);
    some_more();
    chain.start_again(victim);
    some_more();
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // all are told of the copy
  }
  enough = true;
  for (std::thread& thread : threads) thread.join();
  a.pull_dense(0, zeros.pointers()).wait();
  for (const auto& p : zeros.params)
    for (const float x : p) EXPECT_EQ(x, static_cast<float>(pushed)) << chain.logs();
  a.goodbye();
  b.goodbye();
  for (size_t s = 0; s < 2; ++s) EXPECT_EQ(chain.servers[s]->wait(), 0) << chain.logs();
}

// One that was started again must not take the place of its copy for a worker that starts then, nor
// for one that has not noticed yet.
TEST(Replica, AServerThatCameBackSendsWorkersToItsCopy) {
  Chain chain("async");
  const JobSpec job = chain.job();
  Values ones(job.dense[0]), values(job.dense[0]);
  for (auto& p : ones.params) std::ranges::fill(p, 1.0f);
  for (auto& p : values.params) std::ranges::fill(p, 0.0f);
  Client a(chain.client(0));
  a.set_dense(0, values.const_pointers()).wait();
  chain.kill(1);
  chain.start(1, "blank:");
  for (int i = 0; i < 10; ++i) a.push_dense(0, ones.const_pointers(), 0).wait();
  Client b(chain.client(1));
  for (int i = 0; i < 10; ++i) b.push_dense(0, ones.const_pointers(), 0).wait();
  EXPECT_TRUE(chain.servers[1]->says("is complete")) << chain.logs();
  EXPECT_EQ(chain.servers[1]->output().find("takes its place"), std::string::npos) << chain.logs();
  b.pull_dense(0, values.pointers()).wait();
  for (const auto& p : values.params)
    for (const float x : p) EXPECT_EQ(x, 20) << chain.logs();
  a.goodbye();
  b.goodbye();
  for (size_t s = 0; s < 2; ++s) EXPECT_EQ(chain.servers[s]->wait(), 0) << chain.logs();
}

// Where no worker has come to the copy, one that starts waits for the server: it may start later.
TEST(Replica, AServerThatHasNotStartedIsWaitedFor) {
  Chain chain("async");
  ASSERT_TRUE(chain.servers[0]->says("listens"));
  chain.servers[1]->signal(SIGKILL);
  chain.servers[1]->wait();
  ClientOptions options = chain.client(0);
  options.connect_timeout = std::chrono::seconds(1);
  testing::expect_error(Error::Kind::kTimeout, {"parameter server"}, [&] { Client a(options); });
  EXPECT_EQ(chain.servers[0]->output().find("takes its place"), std::string::npos);
}

}  // namespace
}  // namespace fleetx::ps
