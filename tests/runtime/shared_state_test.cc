#include "fleetx/runtime/shared_state.h"

#include <gtest/gtest.h>

#include "fleetx/ir/rewriter.h"
#include "fleetx/nn/nn.h"
#include "fleetx/runtime/planner.h"

namespace fleetx::runtime {
namespace {

TEST(SharedState, IsWhatStepsSend) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var loss = nn::mean(nn::fc(b.data("x", f32, {-1, 4}), {.size = 2, .name = "fc"}));
  ir::Rewriter rw(main);
  const ir::Attrs attrs{{"group", "dp"}, {"root", 0}};
  rw.append({.type = "broadcast_start",
             .inputs = {{"xs", {"fc.w_0"}}},
             .outputs = {{"out", {"fc.w_0"}}, {"ticket", {"t"}}},
             .attrs = attrs});
  rw.append({.type = "broadcast_wait",
             .inputs = {{"xs", {"fc.w_0"}}, {"ticket", {"t"}}},
             .outputs = {{"out", {"fc.w_0"}}},
             .attrs = attrs});
  PlanOptions options;
  options.mesh = mesh_of({}, 2, 0);
  const PlannedProgram plan = plan_program(main, {{"x", {f32, {3, 4}}}}, {loss.name()}, options);
  EXPECT_EQ(sent_state(plan), (std::map<std::string, std::string>{{"fc.w_0", "dp"}}));
}

TEST(SharedState, IsMovedOnce) {
  const auto groups = comm::make_local(2);
  const Tensor tensor = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor moved = in_shared_memory(tensor, *groups[0]);
  EXPECT_NE(moved.raw(), tensor.raw());
  EXPECT_EQ(moved.data<float>()[3], 4);
  EXPECT_EQ(in_shared_memory(moved, *groups[0]).raw(), moved.raw());
  const auto alone = comm::make_local(1);
  EXPECT_EQ(in_shared_memory(tensor, *alone[0]).raw(), tensor.raw())
      << "there is nobody to read it";
}

}  // namespace
}  // namespace fleetx::runtime
