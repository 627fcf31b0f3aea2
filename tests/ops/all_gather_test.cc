#include <gtest/gtest.h>

#include "tests/ops/collective_case.h"

namespace fleetx::testing {
namespace {

TEST(AllGather, RowsComeInRankOrder) {
  check_collective({.op = "all_gather",
                    .gives_ranks = true,
                    .reference =
                        [](const Values& of, int) {
                          Value all;
                          for (const Value& v : of) all.insert(all.end(), v.begin(), v.end());
                          return all;
                        },
                    .dtypes = {f32, bf16, f16, f64, i64, i32}});
}

TEST(AllGather, KnowsThatTheBatchIsUnknown) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var all = b.op("all_gather", {{"xs", std::vector{b.data("x", f32, {-1, 2})}}},
                           {{"group", "dp"}, {"ranks", 3}}, {{"out", ir::Names{"all"}}});
  EXPECT_EQ(all.shape(), Shape({-1, 2}));
}

}  // namespace
}  // namespace fleetx::testing
