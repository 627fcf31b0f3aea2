#include <gtest/gtest.h>

#include "tests/ops/collective_case.h"

namespace fleetx::testing {
namespace {

TEST(AllToAll, PartsChangePlaces) {
  check_collective({.op = "all_to_all",
                    .gives_ranks = true,
                    .reads_late = true,
                    .reference =
                        [](const Values& of, int rank) {
                          const size_t part = of.front().size() / of.size();
                          Value out;
                          for (const Value& v : of)
                            for (size_t i = 0; i < part; ++i)
                              out.push_back(v[static_cast<size_t>(rank) * part + i]);
                          return out;
                        },
                    .dtypes = {f32, bf16, f16, f64, i64, i32}});
}

}  // namespace
}  // namespace fleetx::testing
