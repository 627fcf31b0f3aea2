#include <sys/resource.h>

#include "tests/tools/tool.h"

namespace fleetx::testing {
namespace {

struct Plan : ::testing::Test {
  TempDir folder;
  std::string file = folder.write("program.txt", kProgram);
};

TEST_F(Plan, IsATableWithTotals) {
  const ToolResult r = run_tool({"plan", file, "--batch", "1024", "--threads", "1"});
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* part : {"layout", "MFLOP", "offset", "elementwise_add", "f32[1024,4]",
                           "memory: peak", "arena", "dce", "1 threads"})
    EXPECT_TRUE(contains(r.out, part));
}

TEST_F(Plan, FetchKeepsOnlyWhatIsNeeded) {
  const ToolResult r = run_tool({"plan", "--batch", "8", "--fetch", "s", file});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "scale"));
  EXPECT_FALSE(contains(r.out, "elementwise_add"));
}

TEST_F(Plan, ShapeGivesAllSizes) {
  const ToolResult r = run_tool({"plan", "--shape", "x=6,4", file});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "x f32[6,4]"));
}

TEST_F(Plan, MistakesAreExplained) {
  expect_error(run_tool({"plan", file}), 2, "data 'x' is f32[-1,4]: give");
  expect_error(run_tool({"plan", file, "--batch", "0"}), 2, "--batch");
  expect_error(run_tool({"plan", file, "--batch", "many"}), 2, "--batch");
  expect_error(run_tool({"plan", file, "--shape", "x=6,5"}), 2, "f32[6,5]");
  expect_error(run_tool({"plan", file, "--shape", "x=6,"}), 2, "--shape 'x=6,'");
  expect_error(run_tool({"plan", file, "--shape", "z=6", "--batch", "2"}), 2, "no data 'z'");
  expect_error(run_tool({"plan", file, "--batch", "2", "--fetch", "q"}), 2, "fetch 'q'");
  expect_error(run_tool({"plan", file, "--batch", "2", "--skip", "q"}), 2, "'q'");
  expect_error(run_tool({"plan", folder / "none", "--batch", "2"}), 2, "none");
  expect_error(run_tool({"plan", "resnet50", "--shape", "image=2,3,64,64"}), 2, "--batch N");
}

TEST_F(Plan, OfResNet50ReordersAtTheBordersOnly) {
  const ToolResult r = run_tool({"plan", "resnet50", "--batch", "16"});
  ASSERT_EQ(r.code, 0) << r.err;
  // What goes into the fully connected layer, and its gradient.
  EXPECT_TRUE(contains(r.out, "steps, 2 reorders")) << r.out.substr(r.out.rfind("steps,"));
}

TEST_F(Plan, OfResNet50IsMadeInLessThanASecond) {
  const ToolResult r = run_tool({"plan", "resnet50", "--batch", "16"});
  ASSERT_EQ(r.code, 0) << r.err;
  const size_t at = r.out.find("made in ");
  ASSERT_NE(at, std::string::npos) << r.out;
  EXPECT_LT(std::stod(r.out.substr(at + 8)), 1.0);
}

// ---- a job that is not there ----

TEST_F(Plan, OfAJobTellsWhatTravelsAndWhereTheMemoryGoes) {
  const ToolResult r =
      run_tool({"plan", "mlp", "--batch", "64", "--mesh", "dp=64", "--rank", "63"});
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* part : {"# rank 63 of 64", "dp 63 of 64", "all_reduce_start", "all_reduce_wait",
                           "wire: group dp of 64 ranks", "parameters 2.6 MiB",
                           "optimizer and other state 2.6 MiB", "gradient buckets 2.6 MiB"})
    EXPECT_TRUE(contains(r.out, part));
  // 784-512-512-10 with biases, in f32, twice but for one part of 64.
  const double bytes = 4.0 * (784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10);
  const size_t at = r.out.find("ranks: ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NEAR(std::stod(r.out.substr(at + 7)), bytes * 2 * 63 / 64 / 1e6, 0.001);
}

TEST_F(Plan, OfAJobOfOneSendsNothing) {
  const ToolResult r = run_tool({"plan", "tiny-mlp", "--mesh", "dp=1"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_FALSE(contains(r.out, "wire: "));
}

TEST_F(Plan, BadMeshesAreExplained) {
  const auto error = [&](const std::string& mesh, const std::string& part) {
    expect_error(run_tool({"plan", "tiny-mlp", "--mesh", mesh}), 2, part);
  };
  error("dp", "--mesh 'dp': write AXIS=SIZE");
  error("pd=4", "there is no axis 'pd'");
  error("dp=0", "the size of an axis is a whole number from 1 on");
  error("dp=-2", "the size of an axis is a whole number from 1 on");
  error("dp=2x", "the size of an axis is a whole number from 1 on");
  error("dp=2,dp=2", "the axis 'dp' is there twice");
  error("dp=2000000", "at most");
  error("mp=2", "no layer of the program is split");
  error("pp=2", "strategy.pipeline is off");
  expect_error(run_tool({"plan", "tiny-mlp", "--mesh", "dp=4", "--rank", "4"}), 2,
               "--rank 4: the mesh dp=4 has the ranks 0 to 3");
  expect_error(run_tool({"plan", "tiny-mlp", "--rank", "1"}), 2, "--rank 1 needs a --mesh");
}

TEST_F(Plan, OfALargeJobTakesLittleTimeAndMemory) {
  const ToolResult r = run_tool({"plan", "resnet50", "--batch", "32", "--mesh", "dp=64"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "wire: group dp of 64 ranks: 20"));  // 25.6 M parameters
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);  // the largest of all tools that this test has run
  EXPECT_LT(usage.ru_maxrss / 1024, 200) << "MiB";
}

}  // namespace
}  // namespace fleetx::testing
