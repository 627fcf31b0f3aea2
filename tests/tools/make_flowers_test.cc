#include <fstream>

#include "tests/tools/tool.h"

namespace fleetx::testing {
namespace {

TEST(MakeFlowers, WritesPicturesAndLists) {
  const TempDir folder;
  const ToolResult r = run_tool({"make-flowers", folder / "f", "--classes", "3", "--train", "6",
                                 "--val", "3", "--size", "32"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "6 pictures in train.txt, 3 in val.txt, 3 kinds"));
  std::ifstream list(folder / "f/train.txt");
  int lines = 0;
  for (std::string line; std::getline(list, line); ++lines) {
    const std::string picture = line.substr(0, line.rfind(' '));
    EXPECT_TRUE(std::filesystem::exists(folder / ("f/" + picture))) << picture;
  }
  EXPECT_EQ(lines, 6);
}

TEST(MakeFlowers, WrongOptionsAreErrors) {
  const TempDir folder;
  expect_error(run_tool({"make-flowers"}), 2, "DIR is required");
  expect_error(run_tool({"make-flowers", folder / "f", "--classes", "1000"}), 2, "--classes");
  const std::string file = folder.write("file", "");
  const ToolResult r = run_tool({"make-flowers", file + "/f", "--train", "1", "--val", "1"});
  EXPECT_NE(r.code, 0);
  EXPECT_TRUE(contains(r.err, "fleetx: error: "));
}

}  // namespace
}  // namespace fleetx::testing
