// Several machines. Two network namespaces with an address each stand for them; both see the same
// files and processes, but only their own network.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "fleetx/launch/ports.h"
#include "tests/launch/actor.h"
#include "tests/launch/fleetrun.h"

namespace fleetx::testing {
namespace {

bool shell(const std::string& command) {
  return system(("PATH=/usr/sbin:/usr/bin:/sbin:/bin; " + command + " > /dev/null 2>&1").c_str()) ==
         0;
}

// fleetx-a-PID (10.77.0.1) and fleetx-b-PID (10.77.0.2), joined by a virtual cable.
class TwoMachines : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string pid = std::to_string(getpid());
    for (int i = 0; i < 2; ++i) names_[i] = "fleetx" + std::to_string(i) + "-" + pid;
    if (geteuid() != 0) GTEST_SKIP() << "SKIPPED: network namespaces need root";
    if (!shell("ip netns add " + names_[0]) || !shell("ip netns add " + names_[1]))
      GTEST_SKIP() << "SKIPPED: `ip netns add` does not work here";
    if (!shell("ip -n " + names_[0] + " link"))
      GTEST_SKIP() << "SKIPPED: a network namespace cannot be entered here (a chroot?)";
    ASSERT_TRUE(shell("ip -n " + names_[0] + " link add cable type veth peer name cable netns " +
                      names_[1]));
    for (int i = 0; i < 2; ++i) {
      const std::string in = "ip -n " + names_[i] + " ";
      ASSERT_TRUE(shell(in + "addr add 10.77.0." + std::to_string(i + 1) + "/24 dev cable"));
      ASSERT_TRUE(shell(in + "link set cable up") && shell(in + "link set lo up"));
    }
  }
  void TearDown() override {
    for (const std::string& name : names_) shell("ip netns del " + name);
  }
  std::unique_ptr<Fleetrun> start(int machine, const std::vector<std::string>& args,
                                  const std::map<std::string, std::string>& env = {}) {
    return std::make_unique<Fleetrun>(
        args, env,
        std::vector<std::string>{"/usr/bin/env", "ip", "netns", "exec", names_[machine]});
  }

  std::string names_[2];
};

TEST_F(TwoMachines, TheSameCommandOnEach) {
  const std::vector<std::string> args{
      "--ips=10.77.0.1,10.77.0.2", "--gpus=0,1", kActor, "all", "listen", "during"};
  const auto b = start(1, args);  // the order does not matter
  const auto a = start(0, args);
  const FleetrunResult ra = a->wait(), rb = b->wait();
  EXPECT_EQ(ra.code, 0) << ra.err;
  EXPECT_EQ(rb.code, 0) << rb.err;
  const std::string endpoints =
      "PADDLE_TRAINER_ENDPOINTS:\n10.77.0.1:6070\n10.77.0.1:6071\n10.77.0.2:6070\n10.77.0.2:6071\n";
  EXPECT_EQ(a->read("log/endpoints.log"), endpoints);
  EXPECT_EQ(b->read("log/endpoints.log"), endpoints);
  EXPECT_TRUE(contains(a->read("log/workerlog.0"), "worker0 pid"));
  EXPECT_TRUE(contains(b->read("log/workerlog.1"), "worker3 pid"));
  EXPECT_TRUE(contains(rb.out, "worker2 pid"));
}

TEST_F(TwoMachines, AFailureOnOneStopsBothWithItsCode) {
  // With one worker each, the launcher of the one that fails has nothing left to wait for.
  const std::pair<const char*, const char*> failures[] = {
      {"worker0", "2"}, {"worker3", "2"}, {"worker0", "1"}, {"worker1", "1"}};
  for (const auto& [who, each] : failures) {
    const std::vector<std::string> args{"--ips=10.77.0.1,10.77.0.2",
                                        std::string("--nproc_per_node=") + each,
                                        kActor,
                                        who,
                                        "exit:7",
                                        "during"};
    const auto a = start(0, args), b = start(1, args);
    const FleetrunResult ra = a->wait(), rb = b->wait();
    EXPECT_EQ(ra.code, 7) << ra.err;
    EXPECT_EQ(rb.code, 7) << rb.err;
    EXPECT_LT(std::max(ra.seconds, rb.seconds), 5);
    const std::string name = std::string("worker ") + who[6] + " failed after";
    EXPECT_TRUE(contains(ra.err, name));
    EXPECT_TRUE(contains(rb.err, name));
  }
}

// Worker 1 dies, and its launcher is slow to see it; worker 0 has ended for it meanwhile.
TEST_F(TwoMachines, TheFirstCauseIsNamedNotWhatFollowedFromIt) {
  const std::vector<std::string> args{"--ips=10.77.0.1,10.77.0.2", kActor, "worker1", "signal:9",
                                      "follow"};
  const auto a = start(0, args), b = start(1, args);
  ASSERT_TRUE(a->says("err", "worker 0 failed after"));
  usleep(300'000);
  b->signal(SIGCONT);
  for (const FleetrunResult& r : {a->wait(), b->wait()}) {
    EXPECT_EQ(r.code, 128 + SIGKILL) << r.err;
    EXPECT_TRUE(contains(r.err, "worker 1 failed"));
    EXPECT_FALSE(contains(r.err, "worker 0 failed:")) << "as the verdict";
  }
}

// Where nobody reports the cause, what followed from it is the outcome.
TEST_F(TwoMachines, AFailureDoesNotWaitForEverForItsCause) {
  const std::vector<std::string> args{"--ips=10.77.0.1,10.77.0.2", kActor, "worker1", "signal:9",
                                      "follow"};
  const auto a = start(0, args), b = start(1, args);
  const FleetrunResult r = a->wait();
  EXPECT_EQ(r.code, 3) << r.err;
  EXPECT_LT(r.seconds, 8);
  b->signal(SIGCONT);
  EXPECT_NE(b->wait().code, 0);
}

// The server tells the mode on the first machine; the worker dies on the second.
TEST_F(TwoMachines, AnAsyncWorkerIsStartedAgainAndGivenUpIsToldOnBoth) {
  for (const bool always : {false, true}) {
    const std::vector<std::string> args{"--servers=10.77.0.1:6170",
                                        "--workers=10.77.0.2,10.77.0.2",
                                        kActor,
                                        "worker1",
                                        "exit:7",
                                        always ? "always" : "once",
                                        "async"};
    const auto a = start(0, args), b = start(1, args);
    const FleetrunResult ra = a->wait(), rb = b->wait();
    EXPECT_EQ(ra.code, always ? 7 : 0) << ra.err;
    EXPECT_EQ(rb.code, always ? 7 : 0) << rb.err;
    EXPECT_TRUE(contains(rb.err, "worker 1: started again (1 of 3)"));
    if (always) {
      EXPECT_TRUE(contains(ra.err, "worker 1 failed: exit code 7"));
    }
  }
}

TEST_F(TwoMachines, ExitBeforeJoiningIsReportedOnBothMachines) {
  for (const char* who : {"worker0", "worker1"}) {
    const std::vector<std::string> args{"--ips=10.77.0.1,10.77.0.2", kActor, who, "exit:0",
                                        "start"};
    const auto a = start(0, args), b = start(1, args);
    const FleetrunResult ra = a->wait(), rb = b->wait();
    EXPECT_LT(std::max(ra.seconds, rb.seconds), 5);
    const std::string waited =
        who[6] == '0' ? b->read("log/workerlog.0") : a->read("log/workerlog.0");
    EXPECT_TRUE(contains(waited, std::string("rank ") + who[6] + " on host"));
    EXPECT_TRUE(contains(waited, "ended with exit code 0 before it joined the others"));
  }
}

TEST_F(TwoMachines, TheJobIsRestartedOnBoth) {
  const std::vector<std::string> args{
      "--ips=10.77.0.1,10.77.0.2", "--max_restart=1", "/bin/sh", "-c",
      "echo attempt $FLEETX_RESTART; [ $FLEETX_RESTART = 1 ] && "
      "exit 0; [ $PADDLE_TRAINER_ID = 1 ] && sleep 0.2 && exit 4; sleep 60"};
  const auto a = start(0, args), b = start(1, args);
  const FleetrunResult ra = a->wait(), rb = b->wait();
  EXPECT_EQ(ra.code, 0) << ra.err;
  EXPECT_EQ(rb.code, 0) << rb.err;
  EXPECT_EQ(a->read("log/workerlog.0"), "attempt 0\nattempt 1\n");
}

TEST_F(TwoMachines, LostLauncherEndsTheOther) {
  const std::vector<std::string> args{"--ips=10.77.0.1,10.77.0.2", kActor, "none", "work",
                                      "during"};
  for (const int dies : {0, 1}) {
    const auto a = start(0, args), b = start(1, args);
    ASSERT_TRUE(a->says("log/workerlog.0", "met") && b->says("log/workerlog.0", "met"));
    (dies == 0 ? a : b)->signal(SIGKILL);
    const FleetrunResult r = (dies == 0 ? b : a)->wait();
    EXPECT_EQ(r.code, 1) << r.err;
    EXPECT_TRUE(contains(r.err, dies == 0 ? "fleetrun on machine 0" : "fleetrun on machine 1"));
    EXPECT_LT(r.seconds, 6);
  }
}

TEST_F(TwoMachines, CtrlCOnOneStopsBoth) {
  const std::vector<std::string> args{
      "--ips=10.77.0.1,10.77.0.2", "--max_restart=3", kActor, "none", "work", "during"};
  const auto a = start(0, args), b = start(1, args);
  ASSERT_TRUE(a->says("log/workerlog.0", "met") && b->says("log/workerlog.0", "met"));
  b->signal(SIGINT);
  EXPECT_EQ(a->wait().code, 130);
  EXPECT_EQ(b->wait().code, 130);
}

TEST_F(TwoMachines, DifferentFlagsAreAnError) {
  const std::string ips = "--ips=10.77.0.1,10.77.0.2";
  const auto a = start(0, {ips, "--gpus=0,1", "/bin/true"}), b = start(1, {ips, "/bin/true"});
  for (const auto& r : {a->wait(), b->wait()}) {
    EXPECT_EQ(r.code, 2);
    EXPECT_TRUE(contains(r.err, "was started with other flags"));
    EXPECT_TRUE(contains(r.err, "run the same command on every machine"));
  }
}

TEST_F(TwoMachines, ParameterServers) {
  const std::vector<std::string> args{"--servers=10.77.0.1:6170,10.77.0.2:6171",
                                      "--workers=10.77.0.1:6172,10.77.0.2:6173,10.77.0.2:6174",
                                      kActor,
                                      "none",
                                      "done",
                                      "during"};
  const auto a = start(0, args), b = start(1, args);
  const FleetrunResult ra = a->wait(), rb = b->wait();
  EXPECT_EQ(ra.code, 0) << ra.err;
  EXPECT_EQ(rb.code, 0) << rb.err;
  EXPECT_TRUE(contains(a->read("log/serverlog.0"), "server0 pid"));
  EXPECT_TRUE(contains(b->read("log/serverlog.0"), "server1 pid"));
  EXPECT_TRUE(contains(b->read("log/workerlog.1"), "worker2 pid"));
}

TEST_F(TwoMachines, MachineWithServersOnlyEndsWithTheJob) {
  const std::vector<std::string> args{
      "--servers=10.77.0.1:6170", "--workers=10.77.0.2", kActor, "none", "done", "during"};
  const auto a = start(0, args), b = start(1, args);
  EXPECT_EQ(a->wait().code, 0);
  EXPECT_EQ(b->wait().code, 0);
}

// With --master the machines need not know each other; two launchers on one machine will do.
TEST(Machines, RendezvousAtTheMaster) {
  const int port = launch::bind_port("master", {"127.0.0.1", 0}).endpoint.port;
  const auto args = [&](int rank, const char* workers) {
    return std::vector<std::string>{"--master=127.0.0.1:" + std::to_string(port),
                                    "--nnodes=2",
                                    "--rank=" + std::to_string(rank),
                                    std::string("--nproc_per_node=") + workers,
                                    kActor,
                                    "all",
                                    "listen",
                                    "during"};
  };
  Fleetrun b(args(1, "1")), a(args(0, "2"));
  const FleetrunResult ra = a.wait(), rb = b.wait();
  EXPECT_EQ(ra.code, 0) << ra.err;
  EXPECT_EQ(rb.code, 0) << rb.err;
  EXPECT_EQ(a.read("log/endpoints.log"), b.read("log/endpoints.log"));
  EXPECT_TRUE(contains(b.read("log/workerlog.0"), "worker2 pid"));
}

TEST(Machines, WrongSecretIsRefused) {
  const int port = launch::bind_port("master", {"127.0.0.1", 0}).endpoint.port;
  const auto args = [&](int rank) {
    return std::vector<std::string>{"--master=127.0.0.1:" + std::to_string(port),
                                    "--nnodes=2",
                                    "--rank=" + std::to_string(rank),
                                    kActor,
                                    "all",
                                    "meet",
                                    "during"};
  };
  Fleetrun a(args(0), {{"FLEETX_JOB_SECRET", "aa"}}), b(args(1), {{"FLEETX_JOB_SECRET", "bb"}});
  const FleetrunResult rb = b.wait();
  EXPECT_EQ(rb.code, 1);
  EXPECT_TRUE(contains(rb.err, "is the job's secret right"));
  EXPECT_TRUE(contains(rb.err,
                       "start this machine with the --job_id, --master, --nnodes and "
                       "FLEETX_JOB_SECRET of the others"));
  a.signal(SIGINT);  // still waiting
  EXPECT_EQ(a.wait().code, 130);
}

TEST(Machines, ASignalEndsTheWaitForTheFirstMachine) {
  const int port = launch::bind_port("master", {"127.0.0.1", 0}).endpoint.port;
  Fleetrun waiting(
      {"--master=127.0.0.1:" + std::to_string(port), "--nnodes=2", "--rank=1", "/bin/true"});
  ASSERT_TRUE(waiting.says("err", "waits for its peers"));
  const double signalled = now();
  waiting.signal(SIGTERM);
  const FleetrunResult r = waiting.wait();
  EXPECT_EQ(r.code, 128 + SIGTERM);
  EXPECT_LT(now() - signalled, 2);
  EXPECT_TRUE(contains(r.err, "stopped by SIGTERM while waiting for the other machines"));
}

TEST(Machines, ASignalToOneEndsTheWaitOfItsPeers) {
  const int port = launch::bind_port("master", {"127.0.0.1", 0}).endpoint.port;
  const auto args = [&](int rank) {
    return std::vector<std::string>{"--master=127.0.0.1:" + std::to_string(port), "--nnodes=3",
                                    "--rank=" + std::to_string(rank), "/bin/true"};
  };
  Fleetrun a(args(0)), b(args(1));  // the third machine never comes
  ASSERT_TRUE(a.says("err", "waits for its peers") && b.says("err", "waits for its peers"));
  usleep(500'000);  // until b has connected
  b.signal(SIGINT);
  EXPECT_EQ(b.wait().code, 128 + SIGINT);
  const FleetrunResult r = a.wait();
  EXPECT_EQ(r.code, 1);
  EXPECT_LT(r.seconds, 10);
  EXPECT_TRUE(contains(r.err, "rank 1 on host"));
}

TEST(Machines, DuplicateRankIsAnError) {
  const int port = launch::bind_port("master", {"127.0.0.1", 0}).endpoint.port;
  const auto args = [&](int rank) {
    return std::vector<std::string>{"--master=127.0.0.1:" + std::to_string(port), "--nnodes=3",
                                    "--rank=" + std::to_string(rank), "/bin/true"};
  };
  Fleetrun a(args(0)), b(args(1)), c(args(1));
  int named = 0;
  for (const auto& r : {a.wait(), b.wait(), c.wait()}) {
    EXPECT_NE(r.code, 0);
    named += r.code == 2 && contains(r.err, "--rank=1: another machine has this number already");
  }
  EXPECT_EQ(named, 1);
}

TEST(Machines, MasterNeedsItsFlags) {
  const auto refused = [](const std::vector<std::string>& args, const char* part) {
    const FleetrunResult r = run_fleetrun(args);
    EXPECT_EQ(r.code, 2);
    EXPECT_TRUE(contains(r.err, part));
  };
  refused({"--master=127.0.0.1:1", "--nnodes=2", "true"}, "needs --rank");
  refused({"--master=127.0.0.1:1", "--nnodes=2", "--rank=2", "true"}, "must be less than");
  refused({"--master=127.0.0.1:1", "--nnodes=1:3", "--rank=0", "true"}, "not supported");
  refused({"--master=127.0.0.1", "--nnodes=2", "--rank=0", "true"}, "has no port");
  refused({"--nnodes=2", "true"}, "--master");
}

}  // namespace
}  // namespace fleetx::testing
