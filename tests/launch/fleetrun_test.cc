#include "tests/launch/fleetrun.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/launch/actor.h"
#include "tests/support/sanitized.h"

namespace fleetx::testing {
namespace {

using Args = std::vector<std::string>;

TEST(Fleetrun, OutputMatchesTheDocs) {
  Fleetrun run({"--gpus=0,1", kActor, "all", "meet", "during"});
  const FleetrunResult r = run.wait();
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out,
                       "-----------  Configuration Arguments -----------\n"
                       "gpus: 0,1\n"));
  EXPECT_TRUE(contains(r.out,
                       "heter_worker_num: None\n"
                       "heter_workers:\n"
                       "http_port: None\n"
                       "ips: 127.0.0.1\n"));
  EXPECT_TRUE(contains(r.out, "training_script_args: ['all', 'meet', 'during']\n"));
  EXPECT_TRUE(contains(r.out,
                       "\n------------------------------------------------\n"
                       "launch train in CPU mode\n"));
  EXPECT_TRUE(contains(
      r.err,
      "fleetrun] Local start 2 processes. First process distributed environment info (Only For "
      "Debug):\n"
      "    "
      "+=======================================================================================+\n"
      "    |                        Distributed Envs                      Value                    "
      "|\n"
      "    "
      "+---------------------------------------------------------------------------------------+\n"
      "    |                 PADDLE_CURRENT_ENDPOINT                 127.0.0.1:"));
  EXPECT_TRUE(contains(r.err,
                       "    |                     PADDLE_TRAINERS_NUM                        2     "
                       "                 |\n"));
  EXPECT_TRUE(contains(r.err, "OMP_NUM_THREADS="));
  EXPECT_TRUE(contains(r.err, "job 'default' took "));
  EXPECT_TRUE(contains(r.err, "all 2 processes succeeded; logs are in log"));
  EXPECT_TRUE(contains(r.err, "worker 1 "));
  // The output of the first worker is shown; all have logs.
  EXPECT_TRUE(contains(r.out, "worker0 pid "));
  EXPECT_FALSE(contains(r.out, "worker1 pid "));
  EXPECT_TRUE(contains(run.read("log/workerlog.0"), "worker0 pid "));
  EXPECT_TRUE(contains(run.read("log/workerlog.1"), "worker1 pid "));
  EXPECT_TRUE(contains(run.read("log/endpoints.log"), "PADDLE_TRAINER_ENDPOINTS:\n127.0.0.1:"));
  EXPECT_FALSE(contains(r.out + r.err, "FLEETX_JOB_SECRET"));
}

TEST(Fleetrun, ServersAreStoppedWhenTheWorkersHaveEnded) {
  Fleetrun run({"--server_num=1", "--worker_num=2", kActor, "none", "done", "during"});
  const FleetrunResult r = run.wait();
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "server are killed"));
  EXPECT_TRUE(contains(r.err, "Local start 1 server processes"));
  EXPECT_TRUE(contains(r.out, "[server 0] server0 pid "));
  EXPECT_TRUE(contains(r.out, "[worker 0] worker0 pid "));
  EXPECT_TRUE(contains(run.read("log/serverlog.0"), "server0 pid "));
}

TEST(Fleetrun, FirstFailureIsNamedWithItsLastLines) {
  const FleetrunResult r = run_fleetrun(
      {"--nproc_per_node=3", "/bin/sh", "-c",
       "if [ $PADDLE_TRAINER_ID = 1 ]; then echo something bad; exit 7; fi; sleep 60"});
  EXPECT_EQ(r.code, 7);
  EXPECT_LT(r.seconds, 3);
  EXPECT_TRUE(contains(r.err, "worker 1 failed after "));
  EXPECT_TRUE(contains(r.err, "exit code 7 (host "));
  EXPECT_TRUE(contains(r.err, "Last lines of log/workerlog.1:\n    | something bad\n"));
  EXPECT_TRUE(contains(r.err, "worker 1 failed: exit code 7; logs are in log"));
}

TEST(Fleetrun, RestartsTheWholeJob) {
  const std::string script =
      "echo attempt $FLEETX_RESTART; [ $FLEETX_RESTART = 2 ] && exit 0; "
      "[ $PADDLE_TRAINER_ID = 1 ] && sleep 0.2 && exit 5; sleep 60";
  Fleetrun run({"--nproc_per_node=2", "--max_restart=2", "/bin/sh", "-c", script});
  const FleetrunResult r = run.wait();
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "attempt 3 of 3"));
  EXPECT_EQ(run.read("log/workerlog.0"), "attempt 0\nattempt 1\nattempt 2\n");
  EXPECT_EQ(run_fleetrun({"--max_restart=1", "/bin/sh", "-c", "exit 5"}).code, 5);
}

TEST(Fleetrun, RunsPythonScripts) {
  const TempDir folder;
  std::ofstream(folder / "t.py")
      << "import os, sys\nprint(sys.argv[1:], os.environ['PADDLE_TRAINER_ID'])\n";
  const FleetrunResult r = run_fleetrun({folder / "t.py", "--gpus=7", "-x", "a b"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "['--gpus=7', '-x', 'a b'] 0\n"));
  EXPECT_TRUE(contains(r.out, "gpus: None\n"));  // the script's flag is not ours
  const FleetrunResult other = run_fleetrun({"--python=/bin/echo", folder / "t.py", "hello"});
  EXPECT_TRUE(contains(other.out, "-u " + (folder / "t.py") + " hello\n"));
}

TEST(Fleetrun, WorkersArePinnedToTheirCores) {
  const FleetrunResult r =
      run_fleetrun({"--nproc_per_node=1", "/bin/sh", "-c",
                    "grep Cpus_allowed_list /proc/self/status; echo $OMP_NUM_THREADS"});
  EXPECT_TRUE(contains(r.err, "slot 0 = core"));
  EXPECT_TRUE(contains(r.out, "Cpus_allowed_list:"));
  const FleetrunResult set =
      run_fleetrun({"--nproc_per_node=1", "/bin/sh", "-c", "echo threads $OMP_NUM_THREADS"},
                   {{"OMP_NUM_THREADS", "3"}});
  EXPECT_TRUE(contains(set.out, "threads 3\n"));
  EXPECT_TRUE(contains(set.err, "OMP_NUM_THREADS=3 as you set it"));
}

TEST(Fleetrun, ClosedStdoutDoesNotStopTheJob) {
  const TempDir folder;
  output_of("/bin/bash -c 'set -o pipefail; " + std::string(FLEETRUN) +
            " --log_dir=" + folder.path() + " seq 1 200000 2>/dev/null | head -1'");
  EXPECT_TRUE(std::filesystem::file_size(folder / "workerlog.0") > 1'000'000);
}

// On a terminal there is a progress line, and the first worker has a terminal too.
TEST(Fleetrun, OnATerminal) {
  if (access("/usr/bin/script", X_OK) != 0) GTEST_SKIP() << "SKIPPED: there is no `script`";
  const TempDir folder;
  std::ofstream(folder / "w.sh") << "#!/bin/sh\ntest -t 1 && echo a terminal\nsleep 1.3\nexit 6\n";
  chmod((folder / "w.sh").c_str(), 0755);
  const std::string text = output_of("cd " + folder.path() + "; /usr/bin/script -qec '" + FLEETRUN +
                                     " w.sh; test $? = 6' /dev/null < /dev/null");
  EXPECT_TRUE(contains(text, "a terminal"));
  EXPECT_TRUE(contains(text, "[fleetrun] 1 of 1 processes run, 1.0 s"));
}

TEST(Fleetrun, PodOfAServerJobRunsOnceWithItsEnvironment) {
  const FleetrunResult r =
      run_fleetrun({"/bin/sh", "-c", "echo $TRAINING_ROLE $PADDLE_PORT $POD_IP"},
                   {{"TRAINING_ROLE", "PSERVER"},
                    {"PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.1:6170"},
                    {"POD_IP", "10.0.0.1"},
                    {"PADDLE_PORT", "6170"}});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "PSERVER 6170 10.0.0.1\n"));
}

// Everything that is wrong with the command is said in one line, and nothing is started.
void expect_refused(const Args& args, const std::string& part,
                    const std::map<std::string, std::string>& env = {}) {
  Fleetrun run(args, env);
  const FleetrunResult r = run.wait();
  EXPECT_EQ(r.code, 2) << r.err;
  EXPECT_TRUE(contains(r.err, "fleetrun: error: "));
  EXPECT_TRUE(contains(r.err, part));
  EXPECT_EQ(std::ranges::count(r.err, '\n'), 1) << r.err;
  EXPECT_TRUE(r.out.empty()) << r.out;
  EXPECT_TRUE(run.read("log/workerlog.0").empty());
}

TEST(Fleetrun, BadInput) {
  expect_refused({}, "there is no script to run");
  expect_refused({"--gpus=0,1"}, "there is no script to run");
  expect_refused({"--gpu=0,1", "true"}, "there is no flag '--gpu'; did you mean '--gpus'");
  expect_refused({"-x", "true"}, "there is no flag '-x'");
  expect_refused({"--gpus=", "true"}, "--gpus has no value; write --gpus=VALUE");
  expect_refused({"--rank"}, "--rank has no value; write --rank=VALUE");
  expect_refused({"--max_restart=x", "true"}, "--max_restart = x: expected a number");
  expect_refused({"--nproc_per_node=two", "true"}, "--nproc_per_node");
  expect_refused({"--gpus=0", "--devices=1", "true"}, "--gpus");
  expect_refused({"--gpus=0", "--server_num=1", "true"}, "give flags of one kind only");
  expect_refused({"--ips=1.2.3.4,1.2.3.4", "true"}, "there twice");
  expect_refused({"--ips=1.2.3", "true"}, "not an IPv4 address");
  expect_refused({"--ips=192.0.2.77", "true"}, "not an address of this machine");
  expect_refused({"nothing.py"}, "there is no script 'nothing.py'");
  expect_refused({"./nothing"}, "there is no program './nothing'");
  expect_refused({"nothing-of-this-name"}, "here or on PATH");
  expect_refused({"/tmp"}, "'/tmp' is a folder");
  expect_refused({"--log_dir=/proc/none", "true"}, "--log_dir: cannot write into '/proc/none'");
  expect_refused({"--gpus=0", "true"}, "FLAGS_START_PORT='x'", {{"FLAGS_START_PORT", "x"}});
  const TempDir folder;
  std::ofstream(folder / "t.py") << "";
  std::ofstream(folder / "text") << "";
  expect_refused({folder / "text"}, "may not be executed");
  expect_refused({"--python=/nothing", folder / "t.py"}, "--python: '/nothing'");
}

TEST(Fleetrun, TooFewDescriptorsAreNamed) {
  Fleetrun run({"--nproc_per_node=40", "true"}, {}, {"/usr/bin/prlimit", "--nofile=32"});
  const FleetrunResult r = run.wait();
  EXPECT_EQ(r.code, 2);
  EXPECT_TRUE(contains(r.err, "cannot create a socket (Too many open files)"));
  EXPECT_TRUE(contains(r.err, "raise `ulimit -n`"));
}

// Whoever waits for a worker that ended before it came is told, and does not wait out his deadline.
TEST(Fleetrun, ExitWithoutJoiningIsReported) {
  const TempDir folder;
  const std::string script = folder.write(
      "half.sh", "#!/bin/sh\n[ $PADDLE_TRAINER_ID = 1 ] && exit 0\nexec " FLEETX_HELLO "\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const FleetrunResult r = run_fleetrun({"--nproc_per_node=3", script});
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  EXPECT_LT(r.seconds, 5);
  EXPECT_TRUE(contains(r.out + r.err, "rank 1 on host "));
  EXPECT_TRUE(contains(r.out + r.err, "ended with exit code 0 before it joined the others"));
}

// Between the first failure and SIGTERM the others have a moment to say where they were.
TEST(Fleetrun, WaitingWorkersLogTheFailure) {
  const TempDir folder;
  // By then the others wait: sanitized, they need a second to start on a busy machine.
  const std::string late = kSanitized ? "3" : "0.5";
  const std::string script =
      folder.write("half.sh", "#!/bin/sh\n[ $PADDLE_TRAINER_ID = 1 ] && sleep " + late +
                                  " && kill -9 $$\nexec " FLEETX_HELLO "\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  Fleetrun run({"--nproc_per_node=3", script});
  const FleetrunResult r = run.wait();
  EXPECT_EQ(r.code, 137) << r.err;
  EXPECT_LT(r.seconds, kSanitized ? 8 : 5);
  for (const char* log : {"log/workerlog.0", "log/workerlog.2"}) {
    EXPECT_TRUE(contains(run.read(log), "rank 1 on host "));
    EXPECT_TRUE(contains(run.read(log), "killed by SIGKILL"));
  }
}

TEST(Fleetrun, LogsOfAnEarlierLargerRunAreRemoved) {
  const TempDir folder;
  const auto run = [&](const char* workers, const char* script) {
    return run_fleetrun({"--log_dir=" + folder.path(), std::string("--nproc_per_node=") + workers,
                         "/bin/sh", "-c", script});
  };
  ASSERT_EQ(run("3", "echo first").code, 0);
  folder.write("serverlog.0", "of a job with servers");
  folder.write("workerlog.txt", "not ours");
  // Another job that runs now keeps its logs.
  Fleetrun other({"--log_dir=" + folder.path(), "--nproc_per_node=6", "/bin/sh", "-c",
                  "echo other; exec sleep 60"});
  const auto text_of = [&](const char* log) {
    std::ifstream file(folder / log);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  for (const double end = now() + 10; text_of("workerlog.5") != "other\n" && now() < end;)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  folder.write("workerlog.9", "of a job that has ended");
  ASSERT_EQ(run("1", "echo second").code, 0);
  EXPECT_EQ(text_of("workerlog.0"), "second\n");
  for (const char* gone : {"serverlog.0", "workerlog.9"})
    EXPECT_FALSE(std::filesystem::exists(folder / gone)) << gone;
  EXPECT_TRUE(std::filesystem::exists(folder / "workerlog.txt"));
  EXPECT_EQ(text_of("workerlog.5"), "other\n");
  other.signal(SIGTERM);
  other.wait();
}

TEST(Fleetrun, SixtyFourWorkersAllReduce) {
  const FleetrunResult r = run_fleetrun({"--nproc_per_node=64", FLEETX_HELLO});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "64 workers add up to 2080\n"));
}

TEST(Fleetrun, Help) {
  const FleetrunResult r = run_fleetrun({"--help"});
  EXPECT_EQ(r.code, 0);
  for (const char* part : {"--gpus",
                           "--nproc_per_node",
                           "--ips",
                           "--servers",
                           "--workers",
                           "--server_num",
                           "--worker_num",
                           "--heter_workers",
                           "--heter_worker_num",
                           "--http_port",
                           "--log_dir",
                           "--run_mode",
                           "--master",
                           "--nnodes",
                           "--rank",
                           "--max_restart",
                           "--job_id",
                           "--python",
                           "fleetrun --gpus=0,1 train",
                           "Exit code"})
    EXPECT_TRUE(contains(r.out, part));
}

}  // namespace
}  // namespace fleetx::testing
