#include <fstream>

#include "tests/tools/tool.h"

namespace fleetx::testing {
namespace {

const std::string kSlots = "ids:int64,dense:float32:2,label:int64:1";

TEST(Convert, WritesAFileThatCanBeConvertedAgain) {
  const TempDir folder;
  const std::string a = folder.write("a", "2 17 4 2 0.5 1 1 1\n\n1 5 2 1 2 1 0\n");
  const std::string b = folder.write("b", "1 7 2 3 4 1 1");
  const ToolResult r = run_tool({"convert", a, b, "--slots", kSlots, "-o", folder / "all.bin"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "all.bin: 3 samples, 3 slots, "));
  // Binary files are input, too; a slot less, in another order.
  const ToolResult again = run_tool({"convert", folder / "all.bin", "--slots",
                                     "label:int64:1,ids:int64", "-o", folder / "some.bin"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(contains(again.out, "some.bin: 3 samples, 2 slots, "));
  EXPECT_FALSE(std::filesystem::exists(folder / "all.bin.partial"));
}

TEST(Convert, NamesWhatIsWrongAndLeavesNothing) {
  const TempDir folder;
  const std::string bad = folder.write("bad", "1 5 2 1 2 1 0\n1 x 2 1 2 1 0\n");
  expect_error(run_tool({"convert", bad, "--slots", kSlots, "-o", folder / "o"}), 2,
               "bad:2: sample '1 x 2 1 2 1 0': slot 'ids': 'x' is not a whole number");
  EXPECT_FALSE(std::filesystem::exists(folder / "o"));
  EXPECT_FALSE(std::filesystem::exists(folder / "o.partial"));
  expect_error(run_tool({"convert", bad, "--slots", "ids", "-o", folder / "o"}), 2,
               "expected name:dtype:width");
  expect_error(run_tool({"convert", folder / "no", "--slots", kSlots, "-o", folder / "o"}), 2,
               "cannot be read");
  expect_error(run_tool({"convert", bad, "--slots", kSlots, "-o", folder / "o", "--format", "x"}),
               2, "no format 'x'");
  const ToolResult r =
      run_tool({"convert", bad, "--slots", kSlots, "-o", folder / "o", "--skip-bad-lines"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "o: 1 samples, 3 slots"));
  EXPECT_TRUE(contains(r.out, "1 damaged lines left out"));
}

}  // namespace
}  // namespace fleetx::testing
