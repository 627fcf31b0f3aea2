#include "fleetx/launch/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <sstream>

#include "tests/launch/fleetrun.h"
#include "tests/support/expect_error.h"

namespace fleetx::launch {
namespace {

using namespace fleetx::testing;

int try_bind(int port, std::initializer_list<int> options, Fd& socket_out) {
  socket_out = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  for (const int option : options) setsockopt(socket_out.get(), SOL_SOCKET, option, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(socket_out.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno;
  return listen(socket_out.get(), 1) == 0 ? 0 : errno;
}

TEST(Ports, ChosenPortsDiffer) {
  std::vector<BoundPort> ports;
  std::set<int> numbers;
  for (int i = 0; i < 200; ++i) {
    ports.push_back(bind_port("worker", {"127.0.0.1", 0}));
    numbers.insert(ports.back().endpoint.port);
  }
  EXPECT_EQ(numbers.size(), 200u);
}

TEST(Ports, AProgramCanBindItsPortItself) {
  const BoundPort port = bind_port("worker", {"127.0.0.1", 0});
  Fd socket;
  EXPECT_EQ(try_bind(port.endpoint.port, {}, socket), EADDRINUSE);
  EXPECT_EQ(try_bind(port.endpoint.port, {SO_REUSEADDR}, socket), 0);
  EXPECT_EQ(try_bind(port.endpoint.port, {SO_REUSEPORT}, socket), 0);
}

TEST(Ports, TheSocketCanListen) {
  const BoundPort port = bind_port("worker", {"127.0.0.1", 0});
  EXPECT_EQ(listen(port.socket.get(), 1), 0);
}

TEST(Ports, ErrorNamesTheHolderOfThePort) {
  const BoundPort free = bind_port("worker", {"127.0.0.1", 0});
  Fd taken;
  ASSERT_EQ(try_bind(free.endpoint.port, {SO_REUSEADDR}, taken), 0);
  expect_error(Error::Kind::kInvalidArgument,
               {"server 0: port ", str("in use by process ", getpid(), " ("), "FLAGS_START_PORT"},
               [&] { bind_port("server 0", free.endpoint); });
}

TEST(Ports, ErrorNamesAnotherJobWithTheSamePorts) {
  const int number = bind_port("worker", {"127.0.0.1", 0}).endpoint.port;
  const BoundPort first = bind_port("worker 0", {"127.0.0.1", number});
  expect_error(Error::Kind::kInvalidArgument, {"another fleetrun", str("process ", getpid())}, [&] {
    bind_port("worker 0", {"127.0.0.1", number});
  });
}

TEST(Ports, FixedPortIsFreeAgainAtOnce) {
  const int number = bind_port("worker", {"127.0.0.1", 0}).endpoint.port;
  for (int i = 0; i < 3; ++i) {
    const FleetrunResult r =
        run_fleetrun({"--gpus=0", FLEETX_LAUNCH_ACTOR, "all", "meet", "during"},
                     {{"FLAGS_START_PORT", std::to_string(number)}});
    EXPECT_EQ(r.code, 0) << r.err;
  }
}

TEST(Ports, PortInUseStartsNothing) {
  const BoundPort free = bind_port("worker", {"127.0.0.1", 0});
  Fd taken;
  ASSERT_EQ(try_bind(free.endpoint.port, {SO_REUSEADDR}, taken), 0);
  Fleetrun run({"--server_num=1", "--worker_num=1", "/bin/true"},
               {{"FLAGS_START_PORT", std::to_string(free.endpoint.port)}});
  const FleetrunResult r = run.wait();
  EXPECT_EQ(r.code, 2);
  EXPECT_TRUE(contains(r.err, "server 0: port "));
  EXPECT_TRUE(contains(r.err, "(launch_test)"));
  EXPECT_TRUE(run.read("log/serverlog.0").empty());
  const FleetrunResult store = run_fleetrun(
      {"--server_num=1", "--worker_num=1", str("--http_port=", free.endpoint.port), "/bin/true"});
  EXPECT_EQ(store.code, 2);
  EXPECT_TRUE(contains(store.err, "the store: port "));
}

// 50 jobs at once: every process listens on its port and meets the others of its own job.
TEST(Ports, FiftyLaunchesInParallelDoNotCollide) {
  std::vector<std::unique_ptr<Fleetrun>> runs;
  for (int i = 0; i < 50; ++i)
    runs.push_back(std::make_unique<Fleetrun>(std::vector<std::string>{
        "--nproc_per_node=2", FLEETX_LAUNCH_ACTOR, "all", "listen", "during"}));
  std::set<std::string> endpoints;
  size_t count = 0;
  for (const auto& run : runs) {
    const FleetrunResult r = run->wait();
    EXPECT_EQ(r.code, 0) << r.err;
    std::istringstream lines(run->read("log/endpoints.log"));
    std::string line;
    std::getline(lines, line);
    for (; std::getline(lines, line); ++count) endpoints.insert(line);
  }
  EXPECT_EQ(count, 100u);
  // They may come again once a job has ended, but never while it runs: then listening fails.
  EXPECT_GT(endpoints.size(), 90u);
}

}  // namespace
}  // namespace fleetx::launch
