#include "fleetx/runtime/profile_session.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/expect_error.h"

namespace fleetx::runtime {
namespace {

struct Job {
  Job() { out = ir::Var(b.op("exp", {{"x", b.data("x", DType::kF32, {4})}})).name(); }
  void run() { exe.run(main, scope, {{"x", Tensor::of<float>({4}, {1, 2, 3, 4})}}, {out}); }

  ir::Program main, startup;
  ir::Builder b{main, startup};
  std::string out;
  Scope scope;
  Executor exe;
};

int64_t calls_in(const Profile& profile) {
  int64_t calls = 0;
  for (const auto& [name, row] : profile.rows()) calls += row.calls;
  return calls;
}

TEST(ProfileSession, WatchesTheRunsBetweenStartAndStop) {
  const std::string file = ::testing::TempDir() + "profile_session_test.json";
  Job job;
  job.run();
  profile_session::start();
  EXPECT_TRUE(profile_session::active());
  job.run();
  job.run();
  const Profile profile = profile_session::stop(file);
  EXPECT_FALSE(profile_session::active());
  job.run();
  EXPECT_EQ(calls_in(profile), 2);
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(file)).at("traceEvents").size(), 2u);
  std::filesystem::remove(file);
}

TEST(ProfileSession, ResetForgetsAndAPathThatCannotBeWrittenIsNamed) {
  Job job;
  profile_session::start();
  job.run();
  profile_session::reset();
  job.run();
  EXPECT_EQ(calls_in(profile_session::stop("")), 1);
  profile_session::reset();  // none is active: nothing begins
  EXPECT_FALSE(profile_session::active());
  profile_session::start();
  testing::expect_error(Error::Kind::kInvalidArgument, {"/nowhere/trace.json"},
                        [] { profile_session::stop("/nowhere/trace.json"); });
  EXPECT_FALSE(profile_session::active());
}

}  // namespace
}  // namespace fleetx::runtime
