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

}  // namespace
}  // namespace fleetx::testing
