#include "fleetx/passes/pass.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/passes/texts.h"

namespace fleetx::passes {
namespace {

constexpr const char* kDead = R"(program
data x : f32[-1,4]
var a : f32[-1,4]
var b : f32[-1,4]

forward:
a = scale(x) {scale=2.0}
b = scale(x) {scale=3.0}
)";

TEST(RunLocalPasses, ReportsEveryPassInOrder) {
  ir::Program program = ir::parse_text(kDead);
  const auto reports = run_local_passes(program, {.keep = {"a"}});
  const auto names = local_pass_names();
  ASSERT_EQ(reports.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(reports[i].name, names[i]);
    EXPECT_FALSE(reports[i].skipped);
    EXPECT_GE(reports[i].seconds, 0);
  }
  EXPECT_EQ(reports[0].name, "dce");
  EXPECT_EQ(reports[0].ops_before, 2u);
  EXPECT_EQ(reports[0].ops_after, 1u);
}

TEST(RunLocalPasses, SkipsByName) {
  ir::Program program = ir::parse_text(kDead);
  const auto reports = run_local_passes(program, {.keep = {"a"}, .skip = {"dce"}});
  EXPECT_TRUE(reports[0].skipped);
  EXPECT_EQ(reports[0].ops_after, 2u);
  EXPECT_EQ(program, ir::parse_text(kDead));
}

TEST(RunLocalPasses, UnknownNamesAreErrorsBeforeAnythingIsChanged) {
  ir::Program program = ir::parse_text(kDead);
  try {
    run_local_passes(program, {.keep = {"a"}, .skip = {"fuse_everything"}});
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::kInvalidArgument);
    EXPECT_NE(std::string(e.what()).find("'fuse_everything'"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("dce"), std::string::npos) << e.what();
  }
  EXPECT_THROW(run_local_passes(program, {.keep = {"no_such_variable"}}), Error);
  EXPECT_EQ(program, ir::parse_text(kDead));
}

TEST(RunLocalPasses, DumpsTheProgramAfterEachPass) {
  const auto dir = std::filesystem::path(::testing::TempDir()) / "passes_dump" / "deeper";
  std::filesystem::remove_all(dir);
  ir::Program program = ir::parse_text(kDead);
  const ir::Program before = program;
  run_local_passes(program, {.keep = {"a"}, .dump_dir = dir.string()});
  const auto read = [&](const char* name) {
    std::ostringstream text;
    text << std::ifstream(dir / name).rdbuf();
    return text.str();
  };
  EXPECT_EQ(read("00.program.txt"), ir::to_text(before));
  EXPECT_EQ(read("01.dce.txt"), ir::to_text(program));
}

TEST(RunLocalPasses, SaysWhereADumpCannotBeWritten) {
  ir::Program program = ir::parse_text(kDead);
  EXPECT_THROW(run_local_passes(program, {.dump_dir = "/dev/null/dumps"}), Error);
}

}  // namespace
}  // namespace fleetx::passes
