#include <gtest/gtest.h>

#include "fleetx/autograd/backward.h"
#include "fleetx/nn/nn.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/alone.h"
#include "tests/support/op_case.h"
#include "tests/support/workers.h"

namespace fleetx::testing {
namespace {

const AddCases cases("all_gather_rows", [](Cases& c) {
  c.add({.label = "alone",
         .inputs = {OpInput("x").sparse(random_rows(6, {10, 3}))},
         .attrs = {{"group", "alone"}, {"ranks", 1}},
         .reference = [](const Tensors& in) -> Tensors { return in; },
         .gradient = false});
});

// Of one rank the result is what there was. (The ticket is a number that says nothing.)
const AddCases started("all_gather_rows_start", [](Cases& c) {
  c.add({.label = "alone",
         .inputs = {OpInput("x").sparse(random_rows(6, {10, 3}))},
         .attrs = {{"group", "alone"}, {"ranks", 1}},
         .reference = [](const Tensors& in) -> Tensors {
           return {in[0], Tensor()};
         },
         .gradient = false});
});

const AddCases awaited("all_gather_rows_wait", [](Cases& c) {
  Tensor nothing(i64, {12});
  nothing.data<int64_t>()[0] = -1;
  const auto rows = random_rows(6, {10, 3});
  c.add({.label = "alone",
         .inputs = {OpInput("x").sparse(rows), OpInput("ticket", nothing),
                    OpInput("held").sparse(rows)},
         .attrs = {{"group", "alone"}, {"ranks", 1}},
         .reference = [](const Tensors& in) -> Tensors { return {in[0]}; },
         .gradient = false});
});

// The gradient of sum(table[ids]): a one for every time that an id stands there. Workers have
// padding more or less often.
runtime::Feeds ids_of(int rank, int64_t count) {
  return {{"ids", random_ints({count}, 0, rank == 1 ? 3 : 20, static_cast<uint64_t>(rank))}};
}

// Blocking as "all", and started and awaited as "later". Id 0 is padding, which makes no rows.
ir::Program program_of(int workers) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var ids = b.data("ids", i64, {-1});
  const ir::Var rows =
      nn::embedding(ids, {.rows = 20, .dim = 3, .padding_idx = 0, .sparse = true, .name = "t"});
  const ir::Var loss = b.op("reduce_sum", {{"x", rows}});
  const ir::Var grad = autograd::append_backward(loss).front().grad;
  const ir::Attrs attrs{{"group", "dp"}, {"ranks", workers}};
  const ir::Results call =
      b.op("all_gather_rows_start", {{"x", grad}}, attrs, {{"out", "under_way"}});
  b.op("all_gather_rows", {{"x", grad}}, attrs, {{"out", "all"}});
  b.op("all_gather_rows_wait",
       {{"x", b.var("under_way")}, {"ticket", call["ticket"]}, {"held", grad}}, attrs,
       {{"out", "later"}});
  return main;
}

TEST(AllGatherRows, IsTheAverageOfTheDenseGradients) {
  const int workers = 3;
  const ir::Program program = program_of(workers);
  run_workers(workers, [&](int rank, const SharedGroups& groups) {
    const ir::Program main = program;
    runtime::Scope scope;
    scope.set("t.w_0", random({20, 3}));
    runtime::Executor exe({.plan = {.groups = groups}});
    const auto got = exe.run(main, scope, ids_of(rank, 8), {"all", "later"});
    Tensor want = filled({20, 3}, 0);
    for (int r = 0; r < workers; ++r) {
      const Tensor ids = ids_of(r, 8)[0].second;
      for (int64_t i = 0; i < 8; ++i)
        for (int64_t c = 0; c < 3; ++c)
          if (ids.data<int64_t>()[i] != 0)
            want.data<float>()[ids.data<int64_t>()[i] * 3 + c] += 1.0f / workers;
    }
    expect_close(got[0], want, 1e-6, "rows");
    expect_close(got[1], got[0], 0, "rows that were awaited");
  });
}

TEST(AllGatherRows, BatchesOfDifferentSizeAreAnErrorOfAll) {
  const ir::Program program = program_of(2);
  run_workers(2, [&](int rank, const SharedGroups& groups) {
    const ir::Program main = program;
    runtime::Scope scope;
    scope.set("t.w_0", random({20, 3}));
    runtime::Executor exe({.plan = {.groups = groups}});
    EXPECT_THROW(exe.run(main, scope, ids_of(rank, 8 + rank), {"all"}), Error);
  });
}

}  // namespace
}  // namespace fleetx::testing
