// Switches that work on any program of FleetX, tried on `fleetx bench` as a process.
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <sstream>

#include "tests/tools/tool.h"

namespace fleetx::testing {
namespace {

const std::vector<std::string> kBench{"bench", "tiny-mlp", "--steps", "3", "--json"};

std::string read(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

double loss_of(const ToolResult& r) { return nlohmann::json::parse(r.out).at("loss"); }

TEST(Observe, TraceIsChromeJsonWithEveryOp) {
  const TempDir folder;
  const std::string file = folder / "trace.json";
  const ToolResult r = run_tool(kBench, {{"FLEETX_TRACE", file}});
  ASSERT_EQ(r.code, 0) << r.err;
  const auto trace = nlohmann::json::parse(read(file));
  int momentum = 0;
  for (const auto& event : trace.at("traceEvents")) {
    EXPECT_EQ(event.at("ph"), "X");
    EXPECT_GE(event.at("dur").get<double>(), 0.0);
    momentum += event.at("name") == "momentum";
  }
  EXPECT_GE(momentum, 3);
}

TEST(Observe, DumpHasTheProgramAfterEveryPassAndThePlan) {
  const TempDir folder;
  const ToolResult r = run_tool(kBench, {{"FLEETX_DUMP", folder / "dump"}});
  ASSERT_EQ(r.code, 0) << r.err;
  int texts = 0, plans = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "dump")) {
    texts += entry.path().string().find("fuse_optimizer") != std::string::npos;
    plans += entry.path().filename() == "plan.txt";
  }
  EXPECT_GT(texts, 0);
  EXPECT_GT(plans, 0);
}

TEST(Observe, AnUnknownPassToSkipIsNamed) {
  const ToolResult r = run_tool(kBench, {{"FLEETX_SKIP", "inplaec"}});
  EXPECT_NE(r.code, 0);
  EXPECT_TRUE(contains(r.err, "there is no pass 'inplaec' to skip; did you mean 'inplace'?"));
}

TEST(Observe, TheSameJobGivesTheSameBits) {
  const ToolResult a = run_tool(kBench), b = run_tool(kBench);
  EXPECT_EQ(loss_of(a), loss_of(b));
}

// A CPU that advertises an instruction set and faults on it: FleetX says so once and runs.
TEST(Observe, RunsOnACpuThatLies) {
  for (const char* isa : {"amx", "avx512", "avx2"}) {
    const ToolResult r = run_tool(kBench, {{"FLEETX_SIMULATE_FAULT", isa}});
    ASSERT_EQ(r.code, 0) << r.err;
    const std::string said = std::string("this CPU advertises ") + isa + " but faults on it";
    const size_t at = r.err.find(said);
    ASSERT_NE(at, std::string::npos) << r.err;
    EXPECT_EQ(r.err.find(said, at + 1), std::string::npos) << "said more than once";
    EXPECT_TRUE(std::isfinite(loss_of(r)));
  }
}

TEST(Observe, EveryInstructionSetTrainsAlike) {
  const double best = loss_of(run_tool(kBench));
  for (const char* isa : {"sse", "avx2"})
    EXPECT_NEAR(loss_of(run_tool(kBench, {{"FLEETX_MAX_ISA", isa}})), best, 1e-4) << isa;
}

}  // namespace
}  // namespace fleetx::testing
