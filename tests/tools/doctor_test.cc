#include "fleetx/base/cpu.h"
#include "tests/tools/tool.h"

namespace fleetx::testing {
namespace {

TEST(Doctor, TellsAboutTheMachine) {
  const ToolResult r = run_tool({"doctor"});
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* part : {"model", "used up to", "cores", "threads", "available", "oneDNN",
                           "protobuf", "FLEETX_THREADS", "Fashion-MNIST"})
    EXPECT_TRUE(contains(r.out, part));
}

TEST(Doctor, ReportsAnInstructionSetThatFaults) {
  const ToolResult r = run_tool({"doctor"}, {{"FLEETX_SIMULATE_FAULT", "avx2"}});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "used up to          sse"));
  EXPECT_TRUE(contains(r.out, "faults on it"));
}

TEST(Doctor, SaysAmxOnlyWhereItWorks) {
  const auto says = [](const ToolResult& r) {
    return bool(contains(r.out, "used up to          amx"));
  };
  EXPECT_EQ(says(run_tool({"doctor"})), cpu::survives_in_child(cpu::Isa::kAmx));
  EXPECT_FALSE(says(run_tool({"doctor"}, {{"FLEETX_SIMULATE_FAULT", "amx"}})));
}

TEST(Doctor, SaysWhichDataIsMissing) {
  const TempDir folder;
  const ToolResult r = run_tool({"doctor"}, {{"FLEETX_DATA", folder.path()}});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "dataset-fashion-mnist"));
}

TEST(Doctor, ShowsTheThreadsInForce) {
  const ToolResult r = run_tool({"doctor"}, {{"FLEETX_THREADS", "1"}});
  EXPECT_TRUE(contains(r.out, "threads             1\n"));
  expect_error(run_tool({"doctor"}, {{"FLEETX_THREADS", "few"}}), 2, "FLEETX_THREADS='few'");
}

}  // namespace
}  // namespace fleetx::testing
