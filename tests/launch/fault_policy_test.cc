#include "fleetx/launch/fault_policy.h"

#include <gtest/gtest.h>

#include "tests/launch/actor.h"
#include "tests/launch/fleetrun.h"

namespace fleetx::launch {
namespace {

using fleetx::testing::contains;
using fleetx::testing::Fleetrun;
using fleetx::testing::FleetrunResult;
using fleetx::testing::kActor;
using fleetx::testing::run_fleetrun;

constexpr auto kWorker = JobRole::kWorker, kServer = JobRole::kServer;

TEST(FaultPolicy, EveryModeHasARuleForBothRoles) {
  for (const char* mode : {"sync", "async", "half_async", "geo"})
    for (const JobRole role : {kWorker, kServer}) {
      const Reaction r = react({.mode = mode, .role = role, .has_snapshot = true});
      const bool stops = std::string(mode) == "sync";
      EXPECT_EQ(r.action, stops ? AfterDeath::kStopJob : AfterDeath::kStartAgain) << mode;
    }
  // Nobody has told the mode: the job had not begun.
  EXPECT_EQ(react({.role = kWorker}).action, AfterDeath::kStopJob);
  EXPECT_EQ(react({.mode = "another"}).action, AfterDeath::kStopJob);
}

TEST(FaultPolicy, RestartsAreCounted) {
  const auto action = [](int restarts, std::optional<int> most, JobRole role = kWorker) {
    return react({.mode = "async",
                  .role = role,
                  .restarts = restarts,
                  .max_restart = most,
                  .has_snapshot = true})
        .action;
  };
  EXPECT_EQ(action(kDefaultRestarts - 1, {}), AfterDeath::kStartAgain);
  EXPECT_EQ(action(kDefaultRestarts, {}), AfterDeath::kGoOn);
  EXPECT_EQ(action(kDefaultRestarts, {}, kServer), AfterDeath::kStopJob);
  EXPECT_EQ(action(0, 0), AfterDeath::kGoOn);
  EXPECT_EQ(action(4, 5), AfterDeath::kStartAgain);
}

TEST(FaultPolicy, AWorkerIsNotStartedForServersThatHaveEnded) {
  EXPECT_EQ(react({.mode = "async", .role = kWorker, .servers_ended = true}).action,
            AfterDeath::kGoOn);
}

TEST(FaultPolicy, AServerWithoutSnapshotStopsTheJob) {
  const Reaction r = react({.mode = "geo", .role = kServer});
  EXPECT_EQ(r.action, AfterDeath::kStopJob);
  EXPECT_TRUE(contains(r.why, "--snapshot_interval"));
}

TEST(FaultPolicy, AServerWithACopyComesBackAsACopyOrIsDoneWithout) {
  for (const char* mode : {"sync", "async"}) {
    Death death{.mode = mode, .role = kServer, .has_copy = true};
    const Reaction r = react(death);
    EXPECT_EQ(r.action, AfterDeath::kStartAgain);
    EXPECT_FALSE(r.lost);
    EXPECT_TRUE(
        contains(r.why, "its copy takes its place; nothing is lost; started again (1 of 3)"));
    death.restarts = kDefaultRestarts;
    EXPECT_EQ(react(death).action, AfterDeath::kGoOn);
    EXPECT_FALSE(react(death).lost);
    death = {.mode = mode, .role = kServer, .servers_ended = true, .has_copy = true};
    EXPECT_EQ(react(death).action, AfterDeath::kGoOn);
    EXPECT_EQ(react({.mode = mode, .role = kServer, .has_copy = true, .kept_last = true}).action,
              AfterDeath::kStopJob);
  }
}

TEST(FaultPolicy, CopiesTakeThePlaceOfServersOnce) {
  FleetrunResult r =
      run_fleetrun({"--server_num=2", "--worker_num=2", "--replicas=2", "--max_restart=0", kActor,
                    "server1", "signal:9", "copied", "sync"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "server 1: its copy takes its place; nothing is lost"));
  EXPECT_TRUE(contains(r.err, "all workers succeeded; 1 of the servers died and had a copy"));
  Fleetrun again({"--server_num=2", "--worker_num=2", "--replicas=2", kActor, "server1", "signal:9",
                  "once", "sync"});
  r = again.wait();
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "started again (1 of 3) as the copy of that"));
  EXPECT_TRUE(contains(r.err, "(1 restart)"));
  EXPECT_TRUE(contains(again.read("log/serverlog.1"), "back 1"));
  r = run_fleetrun({"--server_num=2", "--worker_num=2", "--replicas=2", "--snapshot_interval=3",
                    kActor, "server1", "signal:9", "copied", "sync"});
  EXPECT_EQ(r.code, 2);
}

// Servers are asked to end when the last worker has ended.
TEST(FaultPolicy, AServerThatDiesAtTheEndIsNoLossIfItHasACopy) {
  FleetrunResult r = run_fleetrun({"--server_num=2", "--worker_num=2", "--replicas=2", kActor,
                                   "server1", "late", "copied", "sync"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "1 of the servers died and had a copy"));
  r = run_fleetrun(
      {"--server_num=2", "--worker_num=2", kActor, "server1", "late", "copied", "async"});
  EXPECT_EQ(r.code, 137) << r.err;
}

TEST(FaultPolicy, AWorkerIsStartedAgainWhileTheOthersGoOn) {
  for (const char* how : {"exit:3", "signal:9"}) {
    Fleetrun run({"--server_num=1", "--worker_num=3", kActor, "worker1", how, "once", "async"});
    const FleetrunResult r = run.wait();
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_TRUE(contains(r.err, "worker 1 failed after"));
    EXPECT_TRUE(contains(r.err, "worker 1: started again (1 of 3) while the others go on (async)"));
    EXPECT_TRUE(contains(r.err, "succeeded (1 restart)"));
    EXPECT_TRUE(contains(run.read("log/workerlog.1"), "back 1"));
    EXPECT_TRUE(contains(run.read("log/workerlog.1"), "worker1 pid")) << "the old log is kept";
  }
}

TEST(FaultPolicy, AWorkerThatAlwaysFailsIsGivenUpAndTold) {
  Fleetrun run({"--server_num=1", "--worker_num=3", kActor, "worker1", "exit:7", "always", "geo"});
  const FleetrunResult r = run.wait();
  EXPECT_EQ(r.code, 7) << r.err;
  EXPECT_TRUE(contains(r.err, "the others go on without it (geo)"));
  EXPECT_TRUE(contains(r.err, "worker 1 failed: exit code 7; the job came to its end without it"));
  EXPECT_TRUE(contains(run.read("log/workerlog.1"), "back 3"));
}

TEST(FaultPolicy, SyncStopsAtTheFirstDeath) {
  for (const char* who : {"worker1", "server0"}) {
    Fleetrun run({"--server_num=1", "--worker_num=2", "--snapshot_interval=1", kActor, who,
                  "signal:9", "once", "sync"});
    const FleetrunResult r = run.wait();
    EXPECT_EQ(r.code, 137) << r.err;
    EXPECT_EQ(r.err.find("started again"), std::string::npos) << r.err;
  }
}

TEST(FaultPolicy, AServerComesBackFromItsSnapshotAtItsOldPort) {
  Fleetrun run({"--server_num=2", "--worker_num=2", "--snapshot_interval=1", kActor, "server1",
                "signal:9", "once", "async"});
  FleetrunResult r = run.wait();
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "server 1: started again (1 of 3) while the others go on (async)"));
  EXPECT_TRUE(contains(run.read("log/serverlog.1"), "back 1"));

  r = run_fleetrun(
      {"--server_num=1", "--worker_num=1", kActor, "server0", "signal:9", "once", "async"});
  EXPECT_EQ(r.code, 137);
  EXPECT_TRUE(contains(r.err, "server 0: it has no snapshot to go on from"));
}

TEST(FaultPolicy, AStoppedProcessIsNamedAndTreatedAsDead) {
  const std::map<std::string, std::string> soon{{"FLEETX_PS_SILENCE", "0.5"}};
  Fleetrun run(
      {"--server_num=1", "--worker_num=2", kActor, "worker1", "signal:19", "once", "async"}, soon);
  FleetrunResult r = run.wait();
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "worker 1 is stopped (SIGSTOP) since"));
  EXPECT_TRUE(contains(r.err, "worker 1: started again"));

  Fleetrun sync(
      {"--server_num=1", "--worker_num=2", kActor, "server0", "signal:19", "once", "sync"}, soon);
  r = sync.wait();
  EXPECT_EQ(r.code, 137) << r.err;
  EXPECT_TRUE(contains(r.err, "server 0 failed: it was stopped (SIGSTOP) for 0.4 s"));
  EXPECT_LT(r.seconds, 5);
}

TEST(FaultPolicy, SnapshotFlagsAreChecked) {
  const auto refused = [](const std::vector<std::string>& args, const std::string& part) {
    const FleetrunResult r = run_fleetrun(args);
    EXPECT_EQ(r.code, 2);
    EXPECT_TRUE(contains(r.err, part));
  };
  refused({"--server_num=1", "--worker_num=1", "--snapshot_interval=0", "true"},
          "--snapshot_interval=0");
  refused({"--server_num=1", "--worker_num=1", "--snapshot_dir=x", "true"}, "--snapshot_interval");
  refused({"--gpus=0", "--snapshot_interval=3", "true"}, "--snapshot_interval");
  refused({"--server_num=1", "--worker_num=1", "--server_disk=x", "true"}, "--server_memory");
  refused({"--server_num=1", "--worker_num=1", "--server_memory=4X", "true"}, "4X");
}

}  // namespace
}  // namespace fleetx::launch
