#include <gtest/gtest.h>

#include <thread>

#include "fleetx/ps/server.h"
#include "tests/tools/tool.h"

namespace fleetx::testing {
namespace {

TEST(Ps, ShowsAServer) {
  ps::JobSpec job{.workers = 2, .servers = 1};
  job.sparse = {{.name = "embedding", .dim = 4, .rule = ps::add_rule()}};
  ps::Server server({.job = job, .endpoint = "127.0.0.1:0", .secret = "abc", .job_id = "j"});
  std::thread thread([&] { server.run(); });
  const ToolResult r =
      run_tool({"ps", server.endpoint(), "--job", "j"}, {{"FLEETX_JOB_SECRET", "abc"}});
  EXPECT_EQ(r.code, 0) << r.err;
  for (const char* part : {"server 0 of 1", "table embedding: 0 rows", "worker 1: never seen"})
    EXPECT_NE(r.out.find(part), std::string::npos) << r.out;
  expect_error(run_tool({"ps", server.endpoint(), "--job", "j", "--secret", "wrong"}), 1, "secret");
  server.stop();
  thread.join();
  expect_error(run_tool({"ps", "nowhere"}), 2, "HOST:PORT");
}

}  // namespace
}  // namespace fleetx::testing
