#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "fleetx/ps/server.h"
#include "tests/support/temp_dir.h"
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
  expect_error(run_tool({"ps", server.endpoint(), "--job", "j", "--secret", "wrong"}), 1,
               "the secret is that of --secret");
  expect_error(run_tool({"ps", server.endpoint(), "--job", "j"}), 1,
               "what follows from the list of servers " + server.endpoint());
  // What fleetrun leaves in the folder of its logs.
  const TempDir logs;
  std::ofstream(logs / "secret") << "abc";
  const std::string both = server.endpoint() + "," + server.endpoint();
  const ToolResult found = run_tool({"ps", both, "--job", "j", "--log_dir", logs.path()});
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_NE(found.out.rfind("server 0 of 1"), found.out.find("server 0 of 1")) << found.out;
  server.stop();
  thread.join();
  expect_error(run_tool({"ps", "nowhere"}), 2, "HOST:PORT");
}

}  // namespace
}  // namespace fleetx::testing
