#include <algorithm>

#include "tests/tools/tool.h"

namespace fleetx::testing {
namespace {

TEST(Vocab, LearnsAndTokenizes) {
  const TempDir folder;
  const std::string text = folder.write("t", "low low lower lower newest newest widest\n");
  const ToolResult learned =
      run_tool({"vocab", "wordpiece", text, "--size", "40", "-o", folder / "v"});
  ASSERT_EQ(learned.code, 0) << learned.err;
  EXPECT_TRUE(contains(learned.out, " tokens of 4 different words"));
  const ToolResult tokens = run_tool({"tokenize", text, "--vocab", folder / "v"});
  ASSERT_EQ(tokens.code, 0) << tokens.err;
  EXPECT_TRUE(contains(tokens.out, "low low lower lower newest newest"));

  ASSERT_EQ(
      run_tool({"vocab", "bpe", text, "--merges", "2", "-o", folder / "c", "--vocab", folder / "b"})
          .code,
      0);
  const ToolResult pieces =
      run_tool({"tokenize", text, "--codes", folder / "c", "--vocab", folder / "b"});
  ASSERT_EQ(pieces.code, 0) << pieces.err;
  EXPECT_EQ(std::ranges::count(pieces.out, '\n'), 1);
  const ToolResult ids =
      run_tool({"tokenize", text, "--codes", folder / "c", "--vocab", folder / "b", "--ids"});
  EXPECT_EQ(ids.out.find_first_not_of("0123456789 \n"), std::string::npos) << ids.out;
}

TEST(Vocab, NamesWhatIsWrong) {
  const TempDir folder;
  const std::string bad = folder.write("bad", "fine\n\xff\n");
  expect_error(run_tool({"vocab", "wordpiece", bad, "-o", folder / "v"}), 2,
               "bad:2: byte 1 is not UTF-8");
  EXPECT_FALSE(std::filesystem::exists(folder / "v"));
  expect_error(run_tool({"vocab", "bpe", bad, "-o", folder / "v", "--bad-lines", "x"}), 2,
               "--bad-lines is 'x'");
  expect_error(run_tool({"tokenize", bad, "--vocab", folder / "no"}), 2, "no");
  const std::string codes = folder.write("codes", "a b\n"), vocab = folder.write("vocab", "a\n");
  expect_error(run_tool({"tokenize", bad, "--codes", codes, "--vocab", vocab, "--cased"}), 2,
               "--cased is for WordPiece");
}

}  // namespace
}  // namespace fleetx::testing
