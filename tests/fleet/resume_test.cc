// A checkpoint knows no number of workers: saved with 1, 2 or 4 of them and resumed with 1, 2 or 4,
// the losses are those of a run that was not interrupted, within 1e-6. Every sample enters the
// loss, so one that was read twice or left out would show.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "tests/launch/fleetrun.h"

namespace fleetx::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 18, kStop = 6;  // in the middle of the second epoch

// By step.
std::map<int, double> losses(const std::string& network, const std::string& folder, int workers,
                             int steps) {
  const auto job = run_fleetrun({"--nproc_per_node=" + std::to_string(workers), FLEETX_RESUME_JOB,
                                 network, folder, std::to_string(steps)});
  EXPECT_EQ(job.code, 0) << job.out << job.err;
  std::map<int, double> found;
  std::istringstream in(job.out);
  for (std::string line; std::getline(in, line);) {
    int step = 0;
    double loss = 0;
    const size_t at = line.find("step ");
    if (at != std::string::npos &&
        std::sscanf(line.c_str() + at, "step %d loss %lf", &step, &loss) == 2)
      found[step] = loss;
  }
  return found;
}

class Resume : public ::testing::TestWithParam<std::string> {};

TEST_P(Resume, WithAnotherNumberOfWorkers) {
  const TempDir dir;
  const auto whole = losses(GetParam(), dir / "whole", 1, kSteps);
  ASSERT_EQ(whole.size(), static_cast<size_t>(kSteps));
  EXPECT_LT(whole.at(kSteps), whole.at(1));
  for (const int before : {1, 2, 4}) {
    const std::string saved = dir / ("saved" + std::to_string(before));
    const auto first = losses(GetParam(), saved, before, kStop);
    ASSERT_EQ(first.size(), static_cast<size_t>(kStop));
    for (const int after : {1, 2, 4}) {
      const std::string folder = dir / ("resumed" + std::to_string(before) + std::to_string(after));
      fs::copy(saved, folder, fs::copy_options::recursive);
      const auto rest = losses(GetParam(), folder, after, kSteps);
      ASSERT_EQ(rest.size(), static_cast<size_t>(kSteps - kStop)) << before << " -> " << after;
      for (const auto& [step, loss] : rest)
        EXPECT_NEAR(loss, whole.at(step), 1e-6 * std::abs(whole.at(step)))
            << before << " -> " << after << " workers, step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Resume, ::testing::Values("dropout", "sync_batch_norm"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fleetx::testing
