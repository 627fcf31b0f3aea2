// The helper of the tests of `fleetx`, and what holds for all its commands.
#include "tests/tools/tool.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace fleetx::testing {
namespace {

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void redirect(int to, const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || dup2(fd, to) < 0) _exit(126);
}

}  // namespace

ToolResult run_tool(const std::vector<std::string>& args,
                    const std::map<std::string, std::string>& env) {
  const TempDir folder;
  const std::string out = folder / "out", err = folder / "err";
  std::vector<char*> argv = {const_cast<char*>(FLEETX_TOOL)};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    redirect(STDOUT_FILENO, out);
    redirect(STDERR_FILENO, err);
    for (const auto& [name, value] : env) setenv(name.c_str(), value.c_str(), 1);
    execv(FLEETX_TOOL, argv.data());
    _exit(127);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) throw std::runtime_error("no process");
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, read_all(out), read_all(err)};
}

void expect_error(const ToolResult& r, int code, const std::string& part) {
  EXPECT_EQ(r.code, code) << r.err;
  EXPECT_TRUE(r.err.starts_with("fleetx: error: ")) << r.err;
  EXPECT_TRUE(contains(r.err, part));
  EXPECT_EQ(std::ranges::count(r.err, '\n'), 1) << r.err;
}

namespace {

TEST(Tool, HelpListsTheCommands) {
  const ToolResult r = run_tool({"--help"});
  EXPECT_EQ(r.code, 0);
  for (const char* command :
       {"show", "plan", "bench", "doctor", "ps", "strategies", "make-flowers"})
    EXPECT_TRUE(contains(r.out, command));
}

TEST(Tool, EveryCommandTeachesWithExamples) {
  for (const char* command :
       {"show", "plan", "bench", "doctor", "ps", "strategies", "make-flowers"}) {
    const ToolResult r = run_tool({command, "--help"});
    EXPECT_EQ(r.code, 0) << command;
    EXPECT_TRUE(contains(r.out, "Examples:")) << command;
    EXPECT_TRUE(contains(r.out, std::string("  fleetx ") + command)) << command;
  }
}

TEST(Tool, StrategiesSaysWhichGoTogether) {
  const ToolResult r = run_tool({"strategies"});
  EXPECT_EQ(r.code, 0);
  for (const char* part : {"gradient_merge", "works", "[1] strategies '"})
    EXPECT_TRUE(contains(r.out, part));
  EXPECT_TRUE(contains(run_tool({"strategies", "--markdown"}).out, "`gradient_merge` | works |"));
}

TEST(Tool, Version) { EXPECT_EQ(run_tool({"--version"}).out, FLEETX_VERSION "\n"); }

TEST(Tool, OutputThatCannotBeWrittenIsAnError) {
  const int status = std::system(FLEETX_TOOL " doctor > /dev/full 2> /dev/null");
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(Tool, WrongUseIsOneLineAndExitCode2) {
  expect_error(run_tool({}), 2, "subcommand is required");
  expect_error(run_tool({"sho"}), 2, "no command 'sho'; known: show, ");
  expect_error(run_tool({"show"}), 2, "FILE is required");
  expect_error(run_tool({"show", "a", "b"}), 2, "b");
  expect_error(run_tool({"doctor", "--nonsense"}), 2, "--nonsense");
}

}  // namespace
}  // namespace fleetx::testing
