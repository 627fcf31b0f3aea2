#include <gtest/gtest.h>

#include "fleetx/runtime/executor.h"
#include "tests/ops/collective_case.h"
#include "tests/support/op_case.h"
#include "tests/support/workers.h"

namespace fleetx::testing {
namespace {

CollectiveCase broadcast(int root) {
  return {.op = "broadcast",
          .attrs = {{"root", root}},
          .in_place = true,
          .reference = [=](const Values& of, int) { return of[static_cast<size_t>(root)]; },
          .dtypes = {f32, bf16, f16, f64, i64, i32}};
}

TEST(Broadcast, AllHaveTheValuesOfTheFirst) { check_collective(broadcast(0)); }

TEST(Broadcast, OfAnotherRoot) {
  for (const int ranks : {2, 3, 4}) {
    check_forward(broadcast(ranks - 1), ranks, f32);
    check_in_place(broadcast(ranks - 1), ranks, bf16);
    check_gradient(broadcast(ranks - 1), ranks);
  }
}

// Startup programs end so.
TEST(Broadcast, StateOfSeveralTypes) {
  run_workers(3, [&](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var x = b.state("x", f32, {2, 3}), n = b.state("n", i64, {4});
    b.op("broadcast", {{"xs", std::vector{x, n}}}, {{"group", "dp"}, {"root", 1}},
         {{"out", ir::Names{"x", "n"}}});
    runtime::Scope scope;
    scope.set("x", random({2, 3}, static_cast<uint64_t>(rank)));
    scope.set("n", random_ints({4}, 0, 100, static_cast<uint64_t>(rank)));
    runtime::Executor({.plan = {.groups = groups}}).run(main, scope);
    expect_close(scope.get("x"), random({2, 3}, 1), 0, "x");
    expect_close(scope.get("n"), random_ints({4}, 0, 100, 1), 0, "n");
  });
}

}  // namespace
}  // namespace fleetx::testing
