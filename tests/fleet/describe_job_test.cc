// fleetrun --plan: a job is described by its first worker, alone.
#include "tests/launch/fleetrun.h"

namespace fleetx::testing {
namespace {

constexpr const char* kMachine =
    "name: round\ncores: 8\nmemory_GiB: 64\n"
    "compute: {f32_GFLOPS: 100, memory_GBps: 10}\n"
    "links: {host: {GBps: 1, latency_us: 10}, network: {GBps: 0.1, latency_us: 50}}\n";

TEST(FleetrunPlan, DescribesTheJobOfItsFlagsAndStartsNothing) {
  const TempDir folder;
  const std::string machine = folder.write("machine.yaml", kMachine);
  const FleetrunResult r =
      run_fleetrun({"--plan", "--machines", machine, "--timeline", folder / "step.json",
                    "--nnodes=2", "--nproc_per_node=8", FLEETX_TRAIN_JOB});
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* part : {"job: 16 workers, dp 16; 2 hosts of 8 ranks; machine 'round'",
                           "parameters", "exposed comm", "network MB"})
    EXPECT_TRUE(contains(r.out, part));
  EXPECT_FALSE(contains(r.out, "loss"));  // nothing was trained
  EXPECT_TRUE(std::filesystem::exists(folder / "step.json"));
}

TEST(FleetrunPlan, GuessesTheMachineWhereNoneIsGiven) {
  const FleetrunResult r = run_fleetrun({"--plan", "--gpus=0,1", FLEETX_TRAIN_JOB});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "job: 2 workers, dp 2; 1 host of 2 ranks; machine 'guess"));
}

TEST(FleetrunPlan, MistakesAreExplained) {
  const auto error = [](const std::vector<std::string>& args, const std::string& part) {
    const FleetrunResult r = run_fleetrun(args);
    EXPECT_EQ(r.code, 2) << r.out;
    EXPECT_TRUE(contains(r.err, part));
  };
  error({"--machines=m.yaml", FLEETX_TRAIN_JOB}, "--machines and --timeline are about --plan");
  error({"--plan", "--machines=none.yaml", FLEETX_TRAIN_JOB}, "none.yaml: there is no such file");
  error({"--plan", "--server_num=1", "--worker_num=2", FLEETX_TRAIN_JOB}, "parameter servers");
  error({"--plan", "--nproc_per_node=5000", FLEETX_TRAIN_JOB}, "at most 4096");
  error({"--plan", "no-such-program-here"}, "cannot run no-such-program-here");
  const TempDir folder;
  error({"--plan", "--machines", folder.write("bad.yaml", "cores: 0\n"), FLEETX_TRAIN_JOB},
        "bad.yaml:1: 'cores' is 0");
}

}  // namespace
}  // namespace fleetx::testing
