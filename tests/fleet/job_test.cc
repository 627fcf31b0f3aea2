// Whole jobs: real processes, started by fleetrun, by mpirun, or by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

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
  const auto job = run_fleetrun({"--nproc_per_node=3", FLEETX_TRAIN_JOB, "kill", "7"});
  EXPECT_EQ(job.code, 128 + 9) << job.err;
  EXPECT_LT(job.seconds, 10);
  EXPECT_TRUE(contains(job.out + job.err, "worker 1")) << job.err;
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
