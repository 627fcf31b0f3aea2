// The commands that predict: plan --machines, simulate, calibrate.
#include <fstream>
#include <sstream>

#include "tests/tools/tool.h"

namespace fleetx::testing {
namespace {

constexpr const char* kCluster = R"(name: cluster
cores: 8
cores_per_rank: 1
memory_GiB: 256
compute: {f32_GFLOPS: 60000, memory_GBps: 5600, op_us: 5, overlap: 0.95}
links:
  host: {GBps: 60, latency_us: 8, shared: false}
  network: {GBps: 8, latency_us: 20}
failures: {host_mtbf_hours: 5000, checkpoint_s: 20, restart_s: 120}
)";

struct PredictTool : ::testing::Test {
  TempDir folder;
  std::string cluster = folder.write("cluster.yaml", kCluster);

  static std::string read(const std::string& path) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
};

TEST_F(PredictTool, PlanOnMachinesIsATableOfMemoryAndTime) {
  const ToolResult r = run_tool({"plan", "mlp", "--mesh", "dp=16", "--machines", cluster,
                                 "--timeline", folder / "step.json"});
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* part :
       {"job: 16 workers, dp 16; 2 hosts of 8 ranks; machine 'cluster'", "parameters", "state",
        "gradients", "activations", "buffers", "process", "GFLOP", "host MB", "network MB",
        "exposed comm", "bubbles", "examples/s"})
    EXPECT_TRUE(contains(r.out, part));
  EXPECT_TRUE(contains(read(folder / "step.json"), "calls of group dp"));
}

TEST_F(PredictTool, FewerRanksPerHostSendMoreOverTheNetwork) {
  const auto network = [&](const std::string& ranks) {
    const ToolResult r = run_tool(
        {"plan", "mlp", "--mesh", "dp=16", "--machines", cluster, "--ranks-per-host", ranks});
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_TRUE(contains(r.out, ranks + " rank"));
    return r.out;
  };
  EXPECT_NE(network("1"), network("8"));
}

// Workers that divide layers are fed the same.
TEST_F(PredictTool, ThroughputCountsPartsOfTheBatch) {
  const auto plan = [&](const std::string& mesh, bool json) {
    std::vector<std::string> args{"plan",   "bert-base", "--batch",    "2",
                                  "--mesh", mesh,        "--machines", cluster};
    if (json) args.emplace_back("--json");
    const ToolResult r = run_tool(args);
    EXPECT_EQ(r.code, 0) << r.err;
    return r.out;
  };
  const auto number = [](const std::string& text, const std::string& behind) {
    const size_t at = text.find(behind);
    return at == std::string::npos ? 0.0 : std::stod(text.substr(at + behind.size()));
  };
  const auto samples = [&](const std::string& mesh) {
    return number(plan(mesh, false), "all workers: ") * number(plan(mesh, true), "\"step_s\":");
  };
  const double one = samples("dp=1");
  EXPECT_GT(one, 0);
  EXPECT_NEAR(samples("dp=2"), 2 * one, 0.01 * one);
  EXPECT_NEAR(samples("dp=2,mp=2"), 2 * one, 0.01 * one);
}

// Row 8 of what plans are asked for; the machine of the tests may be slow.
TEST_F(PredictTool, AThousandWorkersOfBertLargeTakeLittle) {
  const ToolResult r = run_tool({"plan", "bert-large", "--mesh", "dp=1024", "--machines", cluster});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "128 hosts of 8 ranks"));
}

// Row 4: 0.73 G parameters, two workers with 8 GiB each.
TEST_F(PredictTool, AModelThatDoesNotFitIsRefusedWithWhatIsMissing) {
  const auto plan = [&](const std::string& strategy, const char* log = "error") {
    return run_tool({"plan", "bert-0.7b", "--batch", "4", "--mesh", "dp=2", "--strategy",
                     folder.write("strategy.prototxt", strategy), "--memory-limit-MB", "8192"},
                    {{"FLEETX_LOG", log}});
  };
  for (const char* strategy : {"", "recompute: true", "amp: true recompute: true"})
    expect_error(plan(strategy), 2, "MiB more than the 8192.0 MiB that it has");
  const ToolResult sharded = plan("sharding: true sharding_configs { stage: 3 } recompute: true");
  EXPECT_EQ(sharded.code, 0) << sharded.err;
  const ToolResult chosen = plan(
      R"(auto: true auto_configs { allow: "amp" batch_size: 4 memory_limit_MB: 7372 })", "info");
  EXPECT_EQ(chosen.code, 0) << chosen.err;
  // With amp where this CPU multiplies 16-bit numbers faster.
  const std::string choice =
      chosen.err.substr(std::min(chosen.err.find("chose "), chosen.err.size()));
  EXPECT_TRUE(contains(choice.substr(0, choice.find('\n')), "sharding stage")) << chosen.err;
}

// The job has the mesh that auto has chosen, not the one that it was asked about.
TEST_F(PredictTool, StagesThatAutoChoosesAreThere) {
  const std::string slow = folder.write(
      "slow.yaml",
      "name: two hosts\ncores: 1\nranks: 1\nmemory_GiB: 64\n"
      "compute: {f32_GFLOPS: 100, memory_GBps: 20}\n"
      "links: {host: {GBps: 5, latency_us: 1}, network: {GBps: 0.01, latency_us: 20}}\n"
      "failures: {host_mtbf_hours: 5000, checkpoint_s: 20, restart_s: 120}\n");
  const std::string strategy =
      folder.write("auto.prototxt",
                   "auto: true auto_configs { allow: \"pipeline\" batch_size: 64 "
                   "machine: \"" +
                       slow + "\" }");
  const ToolResult r = run_tool({"plan", "mlp", "--batch", "64", "--mesh", "dp=2", "--machines",
                                 slow, "--strategy", strategy});
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* part : {"job: 2 workers, pp 2; 2 hosts of 1 rank", "stage 0", "stage 1"})
    EXPECT_TRUE(contains(r.out, part)) << r.out;
  const ToolResult faulty = run_tool({"simulate", "mlp", "--batch", "64", "--workers", "2",
                                      "--machines", slow, "--strategy", strategy});
  ASSERT_EQ(faulty.code, 0) << faulty.err;
  EXPECT_TRUE(contains(faulty.out, "job: 2 workers, pp 2")) << faulty.out;
}

TEST_F(PredictTool, SimulateFindsTheBestInterval) {
  const ToolResult r = run_tool({"simulate", "mlp", "--machines", cluster, "--workers", "1000",
                                 "--checkpoint-interval", "600"});
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* part :
       {"125 hosts: a failure every 40.00 h", "as given", "best", "Young's rule", "useful steps/h"})
    EXPECT_TRUE(contains(r.out, part));
}

// A program that was saved before there were workers.
TEST_F(PredictTool, WorkersThatDoNotTalkAreNoted) {
  const std::string file = folder.write("program.txt", kProgram);
  const std::vector<std::string> args{"plan",   file,   "--batch",    "2",
                                      "--mesh", "dp=2", "--machines", cluster};
  const ToolResult r = run_tool(args);
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "makes no calls to other workers"));
}

TEST_F(PredictTool, CalibrateWritesWhatPlanReads) {
  const std::string file = folder / "machine.yaml";
  const ToolResult r =
      run_tool({"calibrate", "--models", "tiny-mlp:8:merge", "--seconds", "1", file});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "classes of ops"));
  EXPECT_TRUE(contains(read(file), "op: fc"));
  EXPECT_TRUE(contains(read(file), "kernel: "));
  EXPECT_TRUE(contains(read(file), "op: accumulate"));
  const ToolResult plan = run_tool({"plan", "tiny-mlp", "--mesh", "dp=2", "--machines", file});
  EXPECT_EQ(plan.code, 0) << plan.err;
}

TEST_F(PredictTool, MistakesAreExplained) {
  const std::string bad = folder.write("bad.yaml", "cores: 0\n");
  expect_error(run_tool({"plan", "mlp", "--machines", bad}), 2, "bad.yaml:1: 'cores' is 0");
  expect_error(run_tool({"plan", "mlp", "--machines", folder / "none"}), 2, "none");
  expect_error(run_tool({"plan", "mlp", "--timeline", folder / "t.json"}), 2, "need --machines");
  expect_error(run_tool({"calibrate", "--models", "mlp:0", folder / "m"}), 2, "MODEL:BATCH");
  expect_error(run_tool({"calibrate", "--models", "mpl", folder / "m"}), 2, "no such model");
  expect_error(run_tool({"calibrate", "--models", "mlp:8:half", folder / "m"}), 2, "bf16 or f16");
  expect_error(
      run_tool({"simulate", "mlp", "--machines", cluster, "--workers", "8", "--mesh", "dp=4"}), 2,
      "has 4 workers, but --workers says 8");
  const std::string staged =
      folder.write("staged", "pipeline: true hybrid_configs { pp_degree: 2 }");
  expect_error(run_tool({"plan", "mlp", "--mesh", "dp=4", "--strategy", staged}), 2,
               "has pp 1, but the degrees of the strategy's hybrid_configs make it 2; write --mesh "
               "pp=2,dp=2,mp=1");
  expect_error(run_tool({"plan", "mlp", "--mesh", "dp=3", "--strategy", staged}), 2,
               "pp x sharding x mp is 2, so start 2 or 4 workers");
  const std::string reliable = folder.write(
      "reliable.yaml", std::string(kCluster).substr(0, std::string(kCluster).find("failures")));
  expect_error(run_tool({"simulate", "mlp", "--machines", reliable, "--workers", "8"}), 2,
               "does not say how often hosts fail");
}

}  // namespace
}  // namespace fleetx::testing
