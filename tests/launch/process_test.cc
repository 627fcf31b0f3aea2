#include "fleetx/launch/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "fleetx/launch/output.h"
#include "fleetx/launch/report.h"
#include "fleetx/launch/supervisor.h"
#include "fleetx/launch/watchdog.h"
#include "tests/launch/fleetrun.h"

namespace fleetx::launch {
namespace {

using fleetx::testing::contains;
using fleetx::testing::TempDir;

TEST(Process, ExitStatusAsText) {
  EXPECT_EQ(in_words({.code = 3}), "exit code 3");
  EXPECT_EQ(in_words({.signal = SIGKILL}), "killed by SIGKILL (killed)");
  EXPECT_EQ(in_words({.signal = SIGSEGV, .core = true}),
            "killed by SIGSEGV (segmentation fault, core dumped)");
  EXPECT_EQ((ExitStatus{.signal = SIGSEGV}).shell_code(), 139);
}

TEST(Process, OomKillsAreCounted) {
  const TempDir folder;
  std::ofstream(folder / "vmstat") << "nr_free_pages 77\noom_kill 3\nother 1\n";
  EXPECT_EQ(count_oom_kills(folder / "vmstat"), 3);
  EXPECT_EQ(count_oom_kills(folder / "none"), 0);
  EXPECT_GE(count_oom_kills("/proc/vmstat"), 0);
}

// The kernel's counter rises while a worker is killed: as if memory had run out.
TEST(Process, OutOfMemoryIsRecognised) {
  const TempDir folder;
  std::ofstream(folder / "vmstat") << "oom_kill 3\n";
  const auto supervised = [&] {
    const Signals signals;
    Supervision how;
    how.signal_fd = signals.fd();
    how.host = "here";
    how.vmstat = folder / "vmstat";
    Console console({});
    Task task;
    task.name = "worker 0";
    task.log_path = folder / "log";
    task.command.argv = {"/bin/sh", "-c",
                         "echo oom_kill 4 > " + (folder / "vmstat") + "; kill -9 $$"};
    _exit(supervise({task}, how, console).code);
  };
  EXPECT_EXIT(supervised(), ::testing::ExitedWithCode(137),
              "worker 0 failed .*killed by the kernel's out-of-memory killer");
}

TEST(Process, ExecErrorsAreReported) {
  const TempDir folder;
  {
    const Output output(folder / "log", false, Output::Kind::kFile);
    std::ofstream(folder / "text") << "no program\n";
    chmod((folder / "text").c_str(), 0755);
    const Child child =
        spawn({.argv = {folder / "text"}, .environment = {}, .cpus = {}}, output.for_child());
    EXPECT_EQ(reap(child).code, 126);
  }
  EXPECT_TRUE(contains(last_lines(folder / "log"), "Exec format error"));
}

TEST(Process, LastLinesOfALog) {
  const TempDir folder;
  std::ofstream file(folder / "log");
  for (int i = 0; i < 1000; ++i) file << "line " << i << "\n";
  file << "no end";
  file.close();
  const std::string lines = last_lines(folder / "log");
  EXPECT_TRUE(lines.starts_with("    | line 989\n")) << lines;
  EXPECT_TRUE(lines.ends_with("    | no end")) << lines;
  EXPECT_EQ(last_lines(folder / "none"), "    | (it is empty)");
}

TEST(Process, OnlyMarkedProcessesAreKilled) {
  const TempDir folder;
  const Output output(folder / "log", false, Output::Kind::kFile);
  const std::string mark = "FLEETX_LAUNCH=" + random_hex(16);
  const auto start = [&](const std::string& entry) {
    return spawn({.argv = {"/bin/sleep", "60"}, .environment = {entry}, .cpus = {}},
                 output.for_child());
  };
  const Child marked = start(mark), other = start("X" + mark);
  // The mark is there once the program runs.
  for (int i = 0; i < 1000 && fleetx::testing::processes_with(mark).size() < 2; ++i) usleep(1000);
  kill_marked(mark);
  EXPECT_EQ(reap(marked).signal, SIGKILL);
  EXPECT_EQ(kill(other.pid, 0), 0);
  signal_group(other, SIGTERM);
  EXPECT_EQ(reap(other).signal, SIGTERM);
}

TEST(Report, Times) {
  EXPECT_EQ(seconds_text(0.314), "0.31 s");
  EXPECT_EQ(seconds_text(12.34), "12.3 s");
  EXPECT_EQ(seconds_text(62), "1 min 02 s");
  EXPECT_EQ(seconds_text(3723), "1 h 02 min 03 s");
}

TEST(Report, LongValuesAreTruncatedAtTheFront) {
  const std::string table =
      environment_table({{"PADDLE_TRAINER_ENDPOINTS",
                          "127.0.0.1:33360,127.0.0.1:11330,127.0.0.1:54803,127.0.0.1:49294"}});
  EXPECT_TRUE(contains(table,
                       "|                PADDLE_TRAINER_ENDPOINTS  ... "
                       "0.1:11330,127.0.0.1:54803,127.0.0.1:49294|\n"));
}

}  // namespace
}  // namespace fleetx::launch
