#include <gtest/gtest.h>

#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/alone.h"
#include "tests/support/op_case.h"
#include "tests/support/workers.h"

namespace fleetx::testing {
namespace {

const AddCases cases("broadcast_from", [](Cases& c) {
  c.add({.label = "alone",
         .inputs = {OpInput("xs", {random({3, 4}, 1), random_ints({5}, 0, 9, 2)}).state()},
         .attrs = {{"group", "alone"}},
         .updates = {{"out", "xs"}},
         .reference = [](const Tensors& in) -> Tensors { return in; },
         .gradient = false});
});

TEST(BroadcastFrom, AllHaveTheValuesOfTheRoot) {
  run_workers(3, [&](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var x = b.state("x", f32, {2, 3}), n = b.state("n", i64, {4});
    b.op("broadcast_from", {{"xs", std::vector{x, n}}}, {{"group", "dp"}, {"root", 1}},
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
