// Faults of the network between hosts, which are network namespaces here: a host that vanishes
// without a word, one direction that is lost, links that are slow or drop packets. All ranks get an
// error in time that names the right rank, or a right result. The tests Network.* end with a table
// of what every rank got. Skipped aloud without root.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "fleetx/comm/communicator.h"
#include "fleetx/comm/tcp_mesh.h"
#include "tests/comm/ranks.h"
#include "tests/support/certificates.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

using namespace comm;

bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// Hosts with two networks, each a bridge: "c" for the store (10.66.0.N), "d" for data (10.55.0.N).
class Hosts {
 public:
  explicit Hosts(int count) : count_(count) {
    good_ = geteuid() == 0 && run("ip netns add " + bridges());
    for (const std::string network : {"c", "d"})
      good_ = good_ && run("ip -n " + bridges() + " link add b" + network + " type bridge") &&
              run("ip -n " + bridges() + " link set b" + network + " up");
    for (int h = 0; h < count && good_; ++h) {
      good_ = run("ip netns add " + name(h)) && run("ip -n " + name(h) + " link set lo up");
      for (const std::string network : {"c", "d"})
        good_ =
            good_ &&
            run(str("ip -n ", name(h), " link add ", network, "0 type veth peer name ", network, h,
                    " netns ", bridges())) &&
            run(str("ip -n ", bridges(), " link set ", network, h, " master b", network, " up")) &&
            run(str("ip -n ", name(h), " addr add ", address(network, h), "/24 dev ", network,
                    "0")) &&
            run(str("ip -n ", name(h), " link set ", network, "0 up"));
    }
  }
  ~Hosts() {
    for (int h = 0; h < count_; ++h) run("ip netns del " + name(h));
    run("ip netns del " + bridges());
  }

  bool good() const { return good_; }
  std::string name(int host) const { return str("fleetx", maker_, "h", host); }
  static std::string address(const std::string& network, int host) {
    return str(network == "c" ? "10.66.0." : "10.55.0.", host + 1);
  }
  void enter(int host) const {
    const Fd fd(open(("/run/netns/" + name(host)).c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(setns(fd.get(), CLONE_NEWNET), 0);
  }

 private:
  std::string bridges() const { return str("fleetx", maker_, "b"); }

  const int count_;
  const pid_t maker_ = getpid();  // of the process that made them
  bool good_ = false;
};

// What a rank did, as the table shows it.
using HostFn = std::function<std::string(Communicator&)>;

class Network : public ::testing::Test {
 protected:
  static constexpr int kHosts = 3, kVictim = 2;

  void SetUp() override {
    if (!hosts_.good())
      GTEST_SKIP() << "needs root and iproute2 (network namespaces, veth, bridge)";
  }
  static void TearDownTestSuite() {
    for (const std::vector<std::string>& row : table_) {
      std::string line;
      for (const std::string& cell : row)
        line += cell + std::string(36 - std::min<size_t>(cell.size(), 34), ' ');
      std::fprintf(stderr, "  %s\n", line.c_str());
    }
    table_.clear();
  }

  // Runs `fn` on a rank of each host. `disturb` runs beside it, a moment after the ranks are
  // connected. Only the victim may end by a signal.
  void run_hosts(const std::string& fault, const HostFn& fn, const std::function<void()>& disturb,
                 Milliseconds timeout = Milliseconds(20'000)) {
    Fd listener;
    std::thread([&] {  // a namespace is a thread's own
      hosts_.enter(0);
      listener = listen_on({Hosts::address("c", 0), 0});
    })
        .join();
    const StoreOptions store{.server = local_endpoint(listener.get()), .secret = make_secret()};
    std::vector<Started> ranks;
    for (int r = 0; r < kHosts; ++r) ranks.push_back(start(r, store, fn, timeout));
    victim_ = ranks[kVictim].pid;
    const StoreServer server({.listen_fd = dup(listener.get()), .secret = store.secret});
    if (disturb) {
      std::this_thread::sleep_for(Milliseconds(700));
      disturb();
    }
    std::vector<std::string> row{fault};
    const Deadline end = after(Milliseconds(25'000));
    for (int r = 0; r < kHosts; ++r)
      row.push_back(result_of(r, ranks[static_cast<size_t>(r)], end));
    for (int h = 0; h < kHosts; ++h)
      EXPECT_TRUE(run("test -z \"$(ip netns pids " + hosts_.name(h) + ")\""))
          << "left on host " << h;
    table_.push_back(row);
  }

  Hosts hosts_{kHosts};
  pid_t victim_ = 0;
  bool victim_dies_ = false;

 private:
  struct Started {
    pid_t pid;
    Fd output;
  };

  Started start(int rank, StoreOptions store, const HostFn& fn, Milliseconds timeout) {
    int pipe_ends[2];
    EXPECT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
    Fd output(pipe_ends[0]), input(pipe_ends[1]);
    const pid_t parent = getpid(), child = fork();
    if (child != 0) return {child, std::move(output)};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(3);
    try {
      hosts_.enter(rank);
      store.rank = rank;
      store.host = str("h", rank);
      const auto c = make_communicator({.rank = rank,
                                        .size = kHosts,
                                        .store = std::make_shared<StoreClient>(store),
                                        .interface = "d0",
                                        .timeout = timeout});
      const std::string result = fn(*c);
      EXPECT_EQ(write(input.get(), result.data(), result.size()), std::ssize(result));
    } catch (const std::exception& e) {
      ADD_FAILURE() << "rank " << rank << ": " << e.what();
    }
    std::cerr << std::flush;
    std::cout << std::flush;
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }

  std::string result_of(int rank, const Started& started, Deadline end) const {
    const bool dies = victim_dies_ && rank == kVictim;
    if (dies) kill(started.pid, SIGKILL);  // where it has only been stopped
    int status = 0;
    while (waitpid(started.pid, &status, WNOHANG) == 0 && Clock::now() < end)
      std::this_thread::sleep_for(Milliseconds(5));
    const bool hangs = Clock::now() >= end;
    if (hangs) kill(started.pid, SIGKILL);
    if (hangs) waitpid(started.pid, &status, 0);
    if (dies) return "(the victim)";
    EXPECT_TRUE(!hangs && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "rank " << rank << (hangs ? " hangs" : " failed");
    std::string text(256, '\0');
    const ssize_t n = read(started.output.get(), text.data(), text.size());
    return n > 0 ? text.substr(0, static_cast<size_t>(n)) : "failed";
  }

  static inline std::vector<std::vector<std::string>> table_{
      {"fault", "rank 0 on h0 gets", "rank 1 on h1 gets", "rank 2 on h2 gets"}};
};

// All-reduces until there is an error, which must name one of these ranks. The last call may take
// 7 s: hosts count as gone after 4 s of silence.
std::string reduce_until_error(Communicator& c, const std::vector<std::string>& names) {
  std::vector<float> data(1 << 20);
  auto last = Clock::now();
  try {
    for (;;) {
      last = Clock::now();
      c.all_reduce(data.data(), static_cast<int64_t>(data.size()), f32);
    }
  } catch (const Error& e) {
    const double seconds = seconds_since(last);
    EXPECT_LT(seconds, 7.0) << e.what();
    for (const std::string& name : names)
      if (std::string(e.what()).find(name) != std::string::npos) {
        char text[100];
        std::snprintf(text, sizeof text, "\"%s\" after %.1f s", name.c_str(), seconds);
        return text;
      }
    ADD_FAILURE() << "rank " << c.rank() << ": " << e.what();
  }
  return "a wrong name";
}

TEST_F(Network, HostThatVanishesIsNamed) {
  run_hosts(
      "a host vanishes",
      [](Communicator& c) {
        // The host itself sees only that the others are gone.
        const std::vector<std::string> others{"rank 0 on", "rank 1 on", "the launcher on"};
        return reduce_until_error(
            c, c.rank() == kVictim ? others : std::vector<std::string>{"rank 2 on host"});
      },
      [&] {
        EXPECT_TRUE(run("ip -n " + hosts_.name(kVictim) + " link set d0 down"));
        EXPECT_TRUE(run("ip -n " + hosts_.name(kVictim) + " link set c0 down"));
      });
}

TEST_F(Network, HostWithoutDataNetworkIsNamed) {
  run_hosts(
      "its data network is down",
      [](Communicator& c) { return reduce_until_error(c, {"rank 2 on host h2"}); },
      [&] { EXPECT_TRUE(run("ip -n " + hosts_.name(kVictim) + " link set d0 down")); });
}

// What host 2 sends to host 0 goes to an address that nobody has.
TEST_F(Network, LostDirectionIsNoticed) {
  run_hosts(
      "nothing from h2 reaches h0",
      [](Communicator& c) {
        return reduce_until_error(c, {"rank 0 on host h0", "rank 2 on host h2"});
      },
      [&] {
        EXPECT_TRUE(run("ip -n " + hosts_.name(kVictim) + " neigh replace " +
                        Hosts::address("d", 0) + " lladdr 02:00:00:00:00:99 dev d0 nud permanent"));
      });
}

TEST_F(Network, KilledWorkerIsNamed) {
  victim_dies_ = true;
  run_hosts(
      "worker 2 is killed",
      [](Communicator& c) { return reduce_until_error(c, {"rank 2 on host h2"}); },
      [&] { EXPECT_EQ(kill(victim_, SIGKILL), 0); });
}

TEST_F(Network, StoppedWorkerIsNamedAtTheDeadline) {
  victim_dies_ = true;
  run_hosts(
      "worker 2 is stopped (deadline 3 s)",
      [](Communicator& c) { return reduce_until_error(c, {"rank 2 on host h2"}); },
      [&] { EXPECT_EQ(kill(victim_, SIGSTOP), 0); }, Milliseconds(3'000));
}

std::string reduce_some(Communicator& c) {
  std::vector<float> data(150'000, 1.0f);
  const auto begin = Clock::now();
  c.all_reduce(data.data(), static_cast<int64_t>(data.size()), f32);
  const double seconds = seconds_since(begin);
  for (const float x : data) {
    EXPECT_EQ(x, 3.0f);
    if (x != 3.0f) break;
  }
  char text[100];
  std::snprintf(text, sizeof text, "the sum after %.1f s", seconds);
  return text;
}

// Slower than the time after which a host counts as gone: that is no fault.
TEST_F(Network, SlowLinkIsNoFault) {
  if (!run("ip netns exec " + hosts_.name(1) +
           " tc qdisc add dev d0 root tbf rate 1mbit burst 16kb latency 400ms"))
    GTEST_SKIP() << "tc has no tbf here";
  const auto begin = Clock::now();
  run_hosts("h1 sends 1 Mbit/s", reduce_some, {});
  EXPECT_GT(seconds_since(begin), 5.0);
}

// A queue that is too short drops packets.
TEST_F(Network, LossyLinkIsNoFault) {
  const std::string tc = "ip netns exec " + hosts_.name(1) + " tc ";
  if (!run(tc + "qdisc add dev d0 root tbf rate 20mbit burst 4kb limit 6kb"))
    GTEST_SKIP() << "tc has no tbf here";
  run_hosts("h1 loses packets", reduce_some, {});
  EXPECT_TRUE(run(tc + "-s qdisc show dev d0 | grep -q 'dropped [1-9]'"));
}

// --- on this host -------------------------------------------------------------------------------

// A rank that computes does not read what comes meanwhile. Its connection must outlive that.
const RegisterRankFn computes("computes_for_long", [](Communicator& c) {
  std::vector<char> data(64 << 20, 'x');
  const auto count = static_cast<int64_t>(data.size());
  if (c.rank() == 0) c.send(data.data(), count, u8, 1);
  if (c.rank() == 1) {
    std::this_thread::sleep_for(Milliseconds(7'000));
    data.assign(data.size(), 'y');
    c.recv(data.data(), count, u8, 0);
    EXPECT_EQ(std::count(data.begin(), data.end(), 'x'), count);
  }
  c.barrier();
});
TEST(TcpFaults, RankThatComputesIsNotTakenForDead) {
  EXPECT_TRUE(run_ranks("tcp", "computes_for_long", {.hosts = {0, 1}}));
}

struct TwoMeshes {
  using Tls = std::shared_ptr<const TlsContext>;
  explicit TwoMeshes(const std::string& second_secret, const Tls& tls = {},
                     const Tls& second_tls = {}) {
    Fd listeners[] = {listen_on({"127.0.0.1", 0}), listen_on({"127.0.0.1", 0})};
    std::vector<Endpoint> addresses;
    for (const Fd& fd : listeners) addresses.push_back(local_endpoint(fd.get()));
    for (int r = 0; r < 2; ++r)
      meshes.push_back(std::make_unique<TcpMesh>(
          r, std::move(listeners[r]), addresses,
          TcpIdentity{r == 0 ? "one secret" : second_secret, "job", r == 0 ? tls : second_tls}));
  }
  std::vector<std::unique_ptr<TcpMesh>> meshes;
};

int open_files() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

// Both ranks connect at the same moment: one connection is left, and nothing is lost or passed.
TEST(TcpMesh, PairHasOneConnection) {
  const Deadline end = after(Milliseconds(60'000));
  for (int round = 0; round < 30; ++round) {
    TwoMeshes two("one secret");
    const int before = open_files();
    std::vector<std::thread> ranks;
    for (int r = 0; r < 2; ++r)
      ranks.emplace_back([&, r] {
        TcpMesh& mesh = *two.meshes[static_cast<size_t>(r)];
        for (int i = 0; i < 20; ++i) {
          const int sent = 100 * r + i;
          int got = -1;
          const auto in = mesh.post_receive(1 - r, 0, 1, &got, sizeof got);
          const auto out = mesh.post_send(1 - r, 0, 1, &sent, sizeof sent, end, [] {});
          EXPECT_TRUE(mesh.wait(*in, end, [] {}));
          EXPECT_TRUE(mesh.wait(*out, end, [] {}));
          EXPECT_EQ(got, 100 * (1 - r) + i);
        }
      });
    for (std::thread& t : ranks) t.join();
    // The second one is closed by the thread that accepts.
    for (int i = 0; i < 100 && open_files() != before + 2; ++i)
      std::this_thread::sleep_for(Milliseconds(10));
    EXPECT_EQ(open_files(), before + 2) << "both ends of one connection";
  }
}

// A message is read to the place of the one that is expected first. If it is another one, it still
// ends up in its own, whatever their lengths.
TEST(TcpMesh, MessagesComeInAnotherOrderThanExpected) {
  TwoMeshes two("one secret");
  const Deadline end = after(Milliseconds(60'000));
  const std::vector<size_t> sizes{1, 100, 9'000, 0, 70'000, 24, 200'000, 3};
  const size_t n = sizes.size();
  for (size_t first = 0; first < n; ++first) {
    std::vector<std::vector<char>> out, in;
    for (size_t i = 0; i < n; ++i) {
      out.emplace_back(sizes[i]);
      for (size_t b = 0; b < sizes[i]; ++b) out[i][b] = static_cast<char>(i * 31 + b * 7 + b / 256);
      in.emplace_back(sizes[i] + 1, '#');
    }
    std::vector<TcpRequestPtr> receives(n), sends;
    const auto expect = [&](size_t i) {
      receives[i] = two.meshes[1]->post_receive(0, 0, i, in[i].data(), sizes[i]);
    };
    for (size_t i = 0; i + 2 < n; ++i) expect(i);
    for (size_t i = 0; i < n; ++i) {
      const size_t j = (first + n - i) % n;
      sends.push_back(two.meshes[0]->post_send(1, 0, j, out[j].data(), sizes[j], end, [] {}));
    }
    EXPECT_TRUE(two.meshes[1]->wait(*receives[0], end, [] {}));
    for (size_t i = n - 2; i < n; ++i) expect(i);
    for (size_t i = 0; i < n; ++i) {
      EXPECT_TRUE(two.meshes[1]->wait(*receives[i], end, [] {}));
      EXPECT_EQ(receives[i]->failure, TcpRequest::Failure::kNone);
      EXPECT_TRUE(std::equal(out[i].begin(), out[i].end(), in[i].begin())) << sizes[i];
      EXPECT_EQ(in[i].back(), '#');
      EXPECT_TRUE(two.meshes[0]->wait(*sends[i], end, [] {}));
    }
  }
}

// A message of another length than expected is named, and those behind it are not spoilt.
TEST(TcpMesh, MessageOfAnotherLengthIsNamed) {
  TwoMeshes two("one secret");
  const Deadline end = after(Milliseconds(60'000));
  const std::string sent(50, 's');
  std::string wrong(10, '-'), right(50, '-');
  const auto first = two.meshes[1]->post_receive(0, 0, 1, wrong.data(), wrong.size());
  const auto second = two.meshes[1]->post_receive(0, 0, 2, right.data(), right.size());
  const auto a = two.meshes[0]->post_send(1, 0, 1, sent.data(), sent.size(), end, [] {});
  const auto b = two.meshes[0]->post_send(1, 0, 2, sent.data(), sent.size(), end, [] {});
  EXPECT_TRUE(two.meshes[1]->wait(*second, end, [] {}));
  EXPECT_EQ(first->failure, TcpRequest::Failure::kMismatch);
  EXPECT_EQ(first->error, "sent 50 bytes where 10 are expected");
  EXPECT_EQ(right, sent);
}

// What a rank has sent arrives although it ends first, and although it leaves something unread.
TEST(TcpMesh, EndOfARankLosesNothing) {
  TwoMeshes two("one secret");
  const Deadline end = after(Milliseconds(20'000));
  const std::vector<char> data(size_t{2} << 20, 'd');
  std::vector<char> in(data.size());
  const auto sent = two.meshes[0]->post_send(1, 0, 1, data.data(), data.size(), end, [] {});
  EXPECT_TRUE(two.meshes[0]->wait(*sent, end, [] {}));
  const auto unread = two.meshes[1]->post_send(0, 0, 1, "nobody reads it", 15, end, [] {});
  std::thread ends([&] { two.meshes[0].reset(); });
  std::this_thread::sleep_for(Milliseconds(100));
  const auto got = two.meshes[1]->post_receive(0, 0, 1, in.data(), in.size());
  EXPECT_TRUE(two.meshes[1]->wait(*got, end, [] {}));
  ends.join();
  EXPECT_EQ(got->failure, TcpRequest::Failure::kNone) << got->error;
  EXPECT_EQ(in, data);
}

TEST(TcpFaults, WrongSecretIsRefused) {
  TwoMeshes two("another secret");
  try {
    two.meshes[0]->post_send(1, 0, 0, "x", 1, after(Milliseconds(5'000)), [] {});
    FAIL() << "it was accepted";
  } catch (const ConnectionLost& e) {
    EXPECT_NE(std::string(e.what()).find("is the job's secret the same?"), std::string::npos)
        << e.what();
  }
}

// Also where the receiver sees the end of its own connection first.
TEST(TcpFaults, TheOnlyMessageOfARankThatLeavesArrives) {
  const Deadline end = after(Milliseconds(20'000));
  for (int i = 0; i < 100; ++i) {
    TwoMeshes two("one secret");
    char question = '?', heard = 0, answer = 0;
    const auto asked = two.meshes[1]->post_send(0, 0, 1, &question, 1, end, [] {});
    const auto got = two.meshes[1]->post_receive(0, 0, 2, &answer, 1);
    std::thread answers([&] {
      TcpMesh& mesh = *two.meshes[0];
      EXPECT_TRUE(mesh.wait(*mesh.post_receive(1, 0, 1, &heard, 1), end, [] {}));
      EXPECT_TRUE(mesh.wait(*mesh.post_send(1, 0, 2, &heard, 1, end, [] {}), end, [] {}));
      two.meshes[0].reset();
    });
    EXPECT_TRUE(two.meshes[1]->wait(*got, end, [] {}));
    EXPECT_EQ(got->failure, TcpRequest::Failure::kNone) << got->error << ", round " << i;
    EXPECT_EQ(answer, question);
    answers.join();
  }
}

class Tls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!certificates_.made()) GTEST_SKIP() << "the command openssl is not installed";
  }
  std::shared_ptr<const TlsContext> context(const std::string& who) const {
    return TlsContext::from_files(file(who + ".pem"), file(who + ".key"), file(who + ".pem"));
  }
  std::string file(const std::string& name) const { return certificates_.file(name); }
  const Certificates certificates_;
};

TEST_F(Tls, MessagesArrive) {
  TwoMeshes two("one secret", context("a"), context("a"));
  const Deadline end = after(Milliseconds(20'000));
  const std::vector<char> small(1000, 's'), large(size_t{5'000'001}, 'l');
  std::vector<char> in(small.size()), large_in(large.size());
  const auto sent = two.meshes[0]->post_send(1, 0, 1, large.data(), large.size(), end, [] {});
  two.meshes[0]->send_in_background();
  const auto got = two.meshes[1]->post_receive(0, 0, 1, large_in.data(), large_in.size());
  EXPECT_TRUE(two.meshes[1]->wait(*got, end, [] {}));
  EXPECT_EQ(large_in, large);
  for (int i = 0; i < 20; ++i) {
    const auto s = two.meshes[1]->post_send(0, 7, 1, small.data(), small.size(), end, [] {});
    const auto r = two.meshes[0]->post_receive(1, 7, 1, in.data(), in.size());
    EXPECT_TRUE(two.meshes[0]->wait(*r, end, [] {}));
    EXPECT_TRUE(two.meshes[1]->wait(*s, end, [] {}));
    EXPECT_EQ(in, small);
  }
}

TEST_F(Tls, OtherCertificatesAndPlainConnectionsAreRefused) {
  const auto refused = [](TwoMeshes& two) {
    EXPECT_THROW(two.meshes[0]->post_send(1, 0, 0, "x", 1, after(Milliseconds(3'000)), [] {}),
                 std::runtime_error);
  };
  TwoMeshes strangers("one secret", context("a"), context("b"));
  refused(strangers);
  TwoMeshes plain("one secret", {}, context("a"));
  refused(plain);
  TwoMeshes encrypted("one secret", context("a"), {});
  refused(encrypted);
  TwoMeshes secrets("another secret", context("a"), context("a"));
  refused(secrets);
}

TEST_F(Tls, MissingFilesAreNamed) {
  expect_error(Error::Kind::kInvalidArgument, {"FLEETX_TLS_CERT", "none.pem"},
               [&] { TlsContext::from_files(file("none.pem"), file("a.key"), file("a.pem")); });
  expect_error(Error::Kind::kInvalidArgument, {"FLEETX_TLS_KEY", "b.key"},
               [&] { TlsContext::from_files(file("a.pem"), file("b.key"), file("a.pem")); });
}

TEST_F(Tls, VariablesSwitchItOn) {
  setenv("FLEETX_TLS_CERT", file("a.pem").c_str(), 1);
  expect_error(Error::Kind::kInvalidArgument, {"not set: FLEETX_TLS_KEY, FLEETX_TLS_CA"},
               [] { TlsContext::from_environment(); });
  certificates_.use("a");
  EXPECT_TRUE(run_ranks("hierarchical", "moves"));
  certificates_.use("");
  EXPECT_EQ(TlsContext::from_environment(), nullptr);
}

// Whatever comes from a stranger, the ranks go on.
TEST(TcpFaults, GarbageIsRefused) {
  Fd listener = listen_on({"127.0.0.1", 0});
  const Endpoint address = local_endpoint(listener.get());
  TcpMesh mesh(0, std::move(listener), {address, address}, {"secret", "job"});
  for (const size_t bytes : {1u, 100u, 5000u}) {
    const Fd fd = connect_to(address, after(Milliseconds(1'000)));
    std::string answer(1, '\0');
    try {
      send_all(fd.get(), std::string(bytes, '\xff'), after(Milliseconds(1'000)));
      for (;;) receive_all(fd.get(), answer.data(), 1, after(Milliseconds(300)));
    } catch (const Error&) {  // closed, or waits for the rest of a message
    }
  }
  auto channel =
      connect_to_rank(address, {"secret", "job"}, 1, 0, after(Milliseconds(5'000)), [] {});
  EXPECT_NE(channel, nullptr);
}

// A send that its owner gives up in the middle does not spoil the connection.
TEST(TcpFaults, AbandonedMessagesDoNotDisturbOthers) {
  TwoMeshes two("one secret");
  const Deadline end = after(Milliseconds(10'000));
  auto large = std::make_unique<std::vector<char>>(size_t{64} << 20, 'a');
  const auto abandoned =
      two.meshes[0]->post_send(1, 0, 1, large->data(), large->size(), end, [] {});
  EXPECT_FALSE(abandoned->done);
  two.meshes[0]->abandon(abandoned);
  std::fill(large->begin(), large->end(), 'b');
  large.reset();
  char in[2] = {};
  std::vector<char> got(size_t{64} << 20);
  const auto received = two.meshes[1]->post_receive(0, 0, 1, got.data(), got.size());
  const auto forgotten = two.meshes[1]->post_receive(0, 0, 9, in, 1);
  two.meshes[1]->abandon(forgotten);
  const auto second = two.meshes[0]->post_send(1, 0, 2, "xy", 2, end, [] {});
  two.meshes[0]->send_in_background();
  const auto other = two.meshes[1]->post_receive(0, 0, 2, in, 2);
  EXPECT_TRUE(two.meshes[1]->wait(*other, end, [] {}));
  EXPECT_TRUE(received->done);
  EXPECT_EQ(std::count(got.begin(), got.end(), 'a'), static_cast<long>(got.size()));
  EXPECT_EQ(in[0], 'x');
}

}  // namespace
}  // namespace fleetx::testing
