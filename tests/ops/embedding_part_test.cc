// A table of one rank; of several: tests/strategies/tensor_parallel_test.cc.
#include <gtest/gtest.h>

#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/alone.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"
#include "tests/support/workers.h"

namespace fleetx::testing {
namespace {

const AddCases cases("embedding_part", [](Cases& c) {
  c.add({.label = "alone",
         .inputs = {{"ids", random_ints({4, 2}, 0, 6)}, {"w", random({6, 3})}},
         .attrs = {{"group", "alone"}, {"ranks", 1}},
         .reference = [](const Tensors& in) -> Tensors {
           return {tabulate({4, 2, 3}, [&](const Index& i) {
             return at(in[1], {at<int64_t>(in[0], {i[0], i[1]}), i[2]});
           })};
         }});
});

// Two ranks with three rows each: rows of the other give zeros.
std::vector<Tensor> rows_of_two_ranks(std::vector<int64_t> ids) {
  std::vector<Tensor> out(2);
  run_workers(2, [&](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var made =
        b.op("embedding_part", {{"ids", b.data("ids", i64, {-1})}, {"w", b.data("w", f32, {3, 2})}},
             {{"group", "dp"}, {"ranks", 2}});
    const Tensor which = Tensor::of(Shape{static_cast<int64_t>(ids.size())}, ids);
    runtime::Scope scope;
    out[static_cast<size_t>(rank)] =
        runtime::Executor({.plan = {.groups = groups}})
            .run(main, scope, {{"ids", which}, {"w", filled({3, 2}, 1)}}, {made.name()})[0];
  });
  return out;
}

TEST(EmbeddingPart, GivesZerosForRowsOfOthers) {
  const auto out = rows_of_two_ranks({0, 3, 5, 2});
  for (size_t rank = 0; rank < 2; ++rank)
    for (size_t i = 0; i < 4; ++i) {
      const bool own = (i == 1 || i == 2) == (rank == 1);
      EXPECT_EQ(out[rank].data<float>()[2 * i], own ? 1 : 0) << "rank " << rank << ", id " << i;
    }
}

TEST(EmbeddingPart, RefusesIdsBeyondTheWholeTable) {
  expect_error(Error::Kind::kInvalidArgument, {"6", "rows in the whole table"}, [] {
    rows_of_two_ranks({0, 6});
  });
}

}  // namespace
}  // namespace fleetx::testing
