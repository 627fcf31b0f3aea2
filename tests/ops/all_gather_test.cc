#include <gtest/gtest.h>

#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/alone.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/workers.h"

namespace fleetx::testing {
namespace {

const AddCases cases("all_gather", [](Cases& c) {
  for (const Tensor& x : {random({3, 4}, 1), random_ints({5}, 0, 9, 2)})
    c.add({.label = str("alone_", name_of(x.dtype())),
           .inputs = {{"x", x}},
           .attrs = {{"group", "alone"}, {"ranks", 1}},
           .reference = [](const Tensors& in) -> Tensors { return in; },
           .gradient = false});
});

TEST(AllGather, RowsComeInRankOrder) {
  run_workers(3, [&](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var x = b.data("x", f32, {-1, 2});
    const ir::Var all = b.op("all_gather", {{"x", x}}, {{"group", "dp"}, {"ranks", 3}});
    EXPECT_EQ(all.shape(), Shape({-1, 2}));
    runtime::Scope scope;
    const auto value = static_cast<float>(rank);
    const auto out = runtime::Executor({.plan = {.groups = groups}})
                         .run(main, scope, {{"x", Tensor::of<float>({1, 2}, {value, 10 + value})}},
                              {all.name()});
    expect_close(out[0], Tensor::of<float>({3, 2}, {0, 10, 1, 11, 2, 12}), 0, "out");
  });
}

TEST(AllGather, IsForACertainNumberOfWorkers) {
  run_workers(2, [&](int, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var all =
        b.op("all_gather", {{"x", b.data("x", f32, {1})}}, {{"group", "dp"}, {"ranks", 3}});
    runtime::Scope scope;
    expect_error(Error::Kind::kInvalidArgument, {"for 3 workers, the group has 2"}, [&] {
      runtime::Executor({.plan = {.groups = groups}})
          .run(main, scope, {{"x", Tensor::of<float>({1}, {0})}}, {all.name()});
    });
  });
}

}  // namespace
}  // namespace fleetx::testing
