#include "fleetx/comm/store.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "fleetx/comm/store_wire.h"
#include "tests/support/expect_error.h"
#include "tests/support/sanitized.h"

namespace fleetx::comm {
namespace {

using fleetx::testing::expect_error;

constexpr Milliseconds kSoon{200};

struct StoreTest : ::testing::Test {
  StoreServer server{{.secret = "s3cret", .job = "j1"}};

  StoreOptions options(int rank = -1) const {
    return {.server = server.endpoint(),
            .secret = "s3cret",
            .job = "j1",
            .rank = rank,
            .host = "here",
            .timeout = Milliseconds(5'000)};
  }
};

TEST_F(StoreTest, KeepsValuesAndCounters) {
  StoreClient a(options()), b(options());
  const std::string binary("a\0b", 3);
  a.set("key", binary);
  EXPECT_EQ(b.get("key"), binary);
  a.set("key", "");
  EXPECT_EQ(b.get("key"), "");
  EXPECT_EQ(a.add("n", 3), 3);
  EXPECT_EQ(b.add("n", -5), -2);
  EXPECT_EQ(b.add("n", 0), -2);
}

TEST_F(StoreTest, GetWaitsForTheValue) {
  StoreClient a(options()), b(options());
  std::thread late([&] {
    std::this_thread::sleep_for(Milliseconds(50));
    a.set("late", "x");
  });
  EXPECT_EQ(b.get("late"), "x");
  late.join();
}

TEST_F(StoreTest, CallsTimeOut) {
  StoreClient a(options());
  expect_error(Error::Kind::kTimeout, {"never", "no answer after"}, [&] { a.get("never", kSoon); });
  expect_error(Error::Kind::kTimeout, {"meet", "missing: 0, 2"},
               [&] { a.barrier("meet", 1, 3, kSoon); });
  a.set("never", "now");
  EXPECT_EQ(a.get("never", kSoon), "now");
}

TEST_F(StoreTest, GatherReturnsAllValuesByIndex) {
  constexpr int n = 32;
  std::atomic<int> right = 0;
  std::vector<std::thread> ranks;
  for (int r = 0; r < n; ++r)
    ranks.emplace_back([&, r] {
      StoreClient store(options(r));
      for (int round = 0; round < 5; ++round) {
        const auto all = store.gather("addresses", r, n, str(r * round));
        for (int i = 0; i < n; ++i) right += all[static_cast<size_t>(i)] == str(i * round);
      }
      store.barrier("end", r, n);
    });
  for (auto& rank : ranks) rank.join();
  EXPECT_EQ(right, n * n * 5);
  EXPECT_FALSE(server.failure());
}

TEST_F(StoreTest, RejectsInvalidRequests) {
  StoreClient a(options()), b(options());
  expect_error(Error::Kind::kInvalidArgument, {"index 3 of 3"}, [&] { a.barrier("x", 3, 3); });
  std::thread first([&] { EXPECT_THROW(a.barrier("y", 0, 2, kSoon), Error); });
  std::this_thread::sleep_for(Milliseconds(50));
  expect_error(Error::Kind::kInvalidArgument, {"count 3 here, 2 at other callers"},
               [&] { b.barrier("y", 1, 3); });
  expect_error(Error::Kind::kInvalidArgument, {"index 0 has called already"},
               [&] { b.barrier("y", 0, 2); });
  first.join();
  expect_error(Error::Kind::kInvalidArgument, {"key of 2000 bytes"},
               [&] { a.set(std::string(2000, 'k'), ""); });
}

TEST(Store, MemoryIsBounded) {
  StoreServer server({.secret = "s", .max_bytes = 10'000});
  StoreClient a({.server = server.endpoint(), .secret = "s"});
  for (int i = 0; i < 100; ++i) a.set("same", std::string(5'000, 'x'));
  expect_error(Error::Kind::kInvalidArgument, {"the store is full"},
               [&] { a.set("other", std::string(5'000, 'x')); });
}

TEST_F(StoreTest, ClientsNeedTheSecret) {
  StoreOptions wrong = options();
  wrong.secret = "guess";
  expect_error(Error::Kind::kComm, {"secret"}, [&] { StoreClient c(wrong); });
  wrong = options();
  wrong.job = "another";
  expect_error(Error::Kind::kComm, {"secret"}, [&] { StoreClient c(wrong); });
  EXPECT_FALSE(server.failure());
}

TEST_F(StoreTest, ServerNeedsTheSecret) {
  Fd listener = listen_on({"127.0.0.1", 0});
  std::thread impostor([&] {
    pollfd ready{listener.get(), POLLIN, 0};
    poll(&ready, 1, 5'000);
    Fd peer(accept(listener.get(), nullptr, nullptr));
    const std::string nonce(wire::kNonceBytes, 'n'), proof(wire::kProofBytes, 'p');
    send_all(peer.get(), wire::encode({.kind = wire::Kind::kChallenge, .value = nonce}),
             after(kSoon));
    send_all(peer.get(), wire::encode({.kind = wire::Kind::kWelcome, .value = proof}),
             after(kSoon));
    char rest[1024];
    while (recv(peer.get(), rest, sizeof rest, 0) > 0) {
    }
  });
  StoreOptions there = options();
  there.server = local_endpoint(listener.get());
  expect_error(Error::Kind::kCorrupt, {"does not know the job's secret"},
               [&] { StoreClient c(there); });
  impostor.join();
}

TEST_F(StoreTest, GarbageDisconnectsOnlyItsSender) {
  std::mt19937 random(1);
  StoreClient good(options());
  for (int i = 0; i < 200; ++i) {
    Fd fd = connect_to(server.endpoint(), after(kSoon));
    std::string bytes(random() % 2000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    try {
      send_all(fd.get(), bytes, after(kSoon));
    } catch (const Error&) {
    }
  }
  good.set("alive", "yes");
  EXPECT_EQ(good.get("alive"), "yes");
  EXPECT_FALSE(server.failure());
}

TEST_F(StoreTest, OversizedFrameIsRejectedBeforeItIsRead) {
  Fd fd = connect_to(server.endpoint(), after(kSoon));
  send_all(fd.get(), std::string("\xff\xff\xff\x7f", 4), after(kSoon));
  char bytes[4096];
  const Deadline end = after(Milliseconds(3'000));
  expect_error(Error::Kind::kComm, {"clos"}, [&] {
    for (;;) receive_all(fd.get(), bytes, 1, end);
  });
}

TEST_F(StoreTest, FailureReachesAllWaiters) {
  StoreClient a(options(0)), b(options(1)), c(options(2));
  std::atomic<int> told = 0;
  const auto watch = b.on_failure([&](const Failure& f) { told += f.rank; });
  std::thread waiter([&] {
    expect_error(Error::Kind::kComm, {"rank 2 on host far (pid 7) ran out of luck"},
                 [&] { b.get("never"); });
  });
  a.abort({2, "far", 7, "ran out of luck", false});
  waiter.join();
  expect_error(Error::Kind::kComm, {"rank 2"}, [&] { c.get("never"); });
  EXPECT_EQ(told, 2);
  ASSERT_TRUE(server.failure());
  EXPECT_EQ(server.failure()->rank, 2);
  StoreClient late(options());
  expect_error(Error::Kind::kComm, {"rank 2"}, [&] { late.get("never"); });
}

TEST_F(StoreTest, LauncherCanPublishAFailure) {
  StoreClient a(options(0));
  server.abort({3, "b", 9, "was killed by SIGSEGV", false});
  expect_error(Error::Kind::kComm, {"rank 3 on host b (pid 9) was killed by SIGSEGV"},
               [&] { a.get("never"); });
}

TEST_F(StoreTest, DeadRankIsDetected) {
  // The store's threads may hold a lock of the sanitizer when this forks.
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's own locks do not survive fork";
  const pid_t child = fork();
  if (child == 0) {
    StoreClient store(options(5));
    store.set("ready", "");
    pause();
    _exit(0);
  }
  StoreClient a(options(0));
  a.wait("ready");
  const auto begin = Clock::now();
  kill(child, SIGKILL);
  expect_error(Error::Kind::kComm, {"rank 5 on host here", str("pid ", child), "gone"},
               [&] { a.get("never"); });
  EXPECT_LT(seconds_since(begin), 1);
  waitpid(child, nullptr, 0);
}

TEST_F(StoreTest, LeaveIsNoFailureButAnExceptionIs) {
  { StoreClient a(options(1)); }
  StoreClient b(options(0));
  b.set("alive", "");
  EXPECT_FALSE(server.failure());
  try {
    StoreClient c(options(2));
    throw std::runtime_error("user's error");
  } catch (const std::runtime_error&) {
  }
  expect_error(Error::Kind::kComm, {"rank 2"}, [&] { b.get("never"); });
}

TEST_F(StoreTest, WaitingRankIsNotSuspected) {
  // 0 waits for 1, 1 waits for 2, 2 hangs.
  StoreClient a(options(0)), b(options(1)), c(options(2));
  Failure told[2];
  std::thread first([&] { told[0] = a.suspect({1, "", 0, "did not answer", true}); });
  std::thread second([&] { told[1] = b.suspect({2, "", 0, "did not answer", true}); });
  first.join();
  second.join();
  for (const Failure& f : told) {
    EXPECT_EQ(f.rank, 2);
    EXPECT_EQ(f.host, "here");
    EXPECT_TRUE(f.hangs);
  }
}

TEST(Store, LostStoreIsDetected) {
  auto server = std::make_unique<StoreServer>(StoreServer::Options{.secret = "s"});
  StoreClient a({.server = server->endpoint(), .secret = "s", .rank = 0});
  std::thread waiter([&] {
    expect_error(Error::Kind::kComm, {"launcher", "is gone"}, [&] { a.get("never"); });
  });
  std::this_thread::sleep_for(Milliseconds(50));
  server.reset();
  waiter.join();
}

TEST(Store, ListensOnlyOnItsAddress) {
  expect_error(Error::Kind::kInvalidArgument, {"all interfaces"}, [] {
    StoreServer s({.listen = {"0.0.0.0", 0}, .secret = "s"});
  });
  expect_error(Error::Kind::kInvalidArgument, {"all interfaces"}, [] {
    StoreServer s({.listen = {"::", 0}, .secret = "s"});
  });
  expect_error(Error::Kind::kInvalidArgument, {"secret is empty"}, [] { StoreServer s({}); });
  Fd listener = listen_on({"127.0.0.1", 0});
  const int port = local_endpoint(listener.get()).port;
  expect_error(Error::Kind::kInvalidArgument, {"cannot listen on 127.0.0.1", "in use"}, [&] {
    StoreServer s({.listen = {"127.0.0.1", port}, .secret = "s"});
  });
  StoreServer server({.listen_fd = dup(listener.get()), .secret = "s"});
  EXPECT_EQ(server.endpoint().port, port);
  StoreClient a({.server = server.endpoint(), .secret = "s"});
  a.set("k", "v");
}

TEST(Store, Addresses) {
  EXPECT_EQ(parse_endpoint("10.0.0.1:6170").host, "10.0.0.1");
  EXPECT_EQ(parse_endpoint("[::1]:80").host, "::1");
  EXPECT_EQ(to_string(Endpoint{"::1", 80}), "[::1]:80");
  for (const char* bad : {"", "host", ":80", "h:", "h:x", "h:70000", "h:-1"})
    EXPECT_THROW(parse_endpoint(bad), Error) << bad;
}

TEST(Store, MessagesRoundTrip) {
  const wire::Message m{wire::Kind::kGather, 7,     -3,
                        int64_t{1} << 40,    "key", std::string(70'000, 'v')};
  wire::Reader reader(wire::kMaxBytes);
  const std::string bytes = wire::encode(m) + wire::encode(m);
  for (size_t i = 0; i < bytes.size(); i += 1000) reader.feed(bytes.substr(i, 1000));
  EXPECT_EQ(reader.next(), m);
  EXPECT_EQ(reader.next(), m);
  EXPECT_EQ(reader.next(), std::nullopt);
  const std::vector<std::string> parts{"", "a", std::string("\0", 1)};
  EXPECT_EQ(wire::unpack(wire::pack(parts)), parts);
  EXPECT_THROW(wire::unpack("\x05\0\0\0abc"), Error);
}

}  // namespace
}  // namespace fleetx::comm
