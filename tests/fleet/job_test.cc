// Whole jobs: real processes, started by fleetrun, by mpirun, or by hand.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>

#include "fleetx/base/error.h"
#include "tests/launch/fleetrun.h"

namespace fleetx::testing {
namespace {

// The figures that worker 0 printed: the losses, then the sum of squares of all parameters.
std::vector<double> figures(const std::string& text) {
  std::vector<double> found;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    for (const std::string word : {"loss ", "parameters "})
      if (const size_t at = line.find(word); at != std::string::npos)
        found.push_back(std::stod(line.substr(at + word.size())));
  return found;
}

std::vector<double> train(int workers) {
  const auto job = run_fleetrun({"--nproc_per_node=" + std::to_string(workers), FLEETX_TRAIN_JOB});
  EXPECT_EQ(job.code, 0) << job.out << job.err;
  return figures(job.out);
}

TEST(Job, NWorkersAreOneWorker) {
  const auto one = train(1);
  ASSERT_EQ(one.size(), 21u);
  EXPECT_LT(one[19], one[0]);
  for (const int workers : {2, 4}) {
    const auto many = train(workers);
    ASSERT_EQ(many.size(), one.size());
    for (size_t i = 0; i < one.size(); ++i)
      EXPECT_NEAR(many[i], one[i], 1e-6 * std::abs(one[i])) << workers << " workers, figure " << i;
  }
}

TEST(Job, TheSameJobGivesTheSameBits) { EXPECT_EQ(train(3), train(3)); }

TEST(Job, ThroughMpirunToo) {
  int code = 0;
  const std::string out = output_of(
      "/usr/bin/mpirun --allow-run-as-root --oversubscribe -np 2 " FLEETX_TRAIN_JOB " 2>&1", &code);
  ASSERT_EQ(code, 0) << out;
  const auto one = train(1), two = figures(out);
  ASSERT_EQ(two.size(), one.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i], one[i], 1e-6 * std::abs(one[i]));
}

TEST(Job, AWorkerThatIsKilledEndsTheJob) {
  Fleetrun job({"--nproc_per_node=3", FLEETX_TRAIN_JOB, "kill", "7"});
  const auto end = job.wait();
  EXPECT_EQ(end.code, 128 + 9) << end.err;
  EXPECT_LT(end.seconds, 10);
  EXPECT_TRUE(contains(end.out + end.err, "worker 1")) << end.err;
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  for (const int survivor : {0, 2}) {
    const std::string log = job.read("log/workerlog." + std::to_string(survivor));
    // Rank, host, op and step.
    for (const std::string& part :
         {str("rank 1 on host ", host), str("all_reduce of "), str("in step 7")})
      EXPECT_TRUE(contains(log, part)) << log;
    // Whoever is the first to see it: the kernel, the store or the launcher.
    EXPECT_TRUE(contains(log, "has died") || contains(log, "is gone") ||
                contains(log, "killed by SIGKILL"))
        << log;
  }
}

TEST(Job, WhatSeveralWorkersWriteDownLiesInPlacesOfTheirOwn) {
  for (const int workers : {1, 2}) {
    const TempDir folder;
    const auto job =
        run_fleetrun({"--nproc_per_node=" + std::to_string(workers), FLEETX_TRAIN_JOB},
                     {{"FLEETX_DUMP", folder / "dump"}, {"FLEETX_TRACE", folder / "trace.json"}});
    ASSERT_EQ(job.code, 0) << job.err;
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      found.insert(entry.path().lexically_relative(folder.path()));
    for (int rank = 0; rank < workers; ++rank) {
      const std::string worker = workers == 1 ? "" : "worker_" + std::to_string(rank);
      EXPECT_EQ(found.contains("dump/" + worker + "/00.program.txt"), workers > 1);
      EXPECT_TRUE(found.contains(std::filesystem::path("dump") / worker / "plan_1" / "plan.txt"));
      EXPECT_TRUE(found.contains(worker.empty() ? "trace.json" : "trace." + worker + ".json"));
    }
    EXPECT_EQ(found.contains("dump/plan_1/plan.txt"), workers == 1);
    EXPECT_EQ(found.contains("trace.json"), workers == 1);
  }
}

TEST(Job, AWorkerWithLessDataDoesNotHangTheOthers) {
  const auto job = run_fleetrun({"--nproc_per_node=2", FLEETX_TRAIN_JOB, "leave", "7"},
                                {{"FLEETX_COMM_TIMEOUT", "20"}});
  EXPECT_EQ(job.code, 1) << job.err;
  EXPECT_LT(job.seconds, 10);
  EXPECT_TRUE(contains(job.out + job.err, "in step 7")) << job.out << job.err;
  EXPECT_TRUE(contains(job.out + job.err, "rank 1")) << job.out << job.err;
}

}  // namespace
}  // namespace fleetx::testing
