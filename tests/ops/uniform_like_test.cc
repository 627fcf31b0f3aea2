#include <gtest/gtest.h>

#include "fleetx/base/rng.h"
#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

// What the rank of a mesh draws for `rows` rows.
Tensor drawn(const Mesh& mesh, const ir::Strings& axes, int64_t rows, int64_t step = 0) {
  ir::Program main, startup;
  main.set_seed(11);
  ir::Builder b(main, startup);
  const ir::Var like = b.data("like", i64, {-1, 333}), at = b.data("at", i64, {1});
  b.op("uniform_like", {{"like", like}, {"step", at}}, {{"axes", axes}}, {{"out", "r"}});
  runtime::Scope scope;
  return runtime::Executor({.plan = {.mesh = mesh}})
      .run(main, scope,
           {{"like", Tensor(i64, {rows, 333})}, {"at", Tensor::of<int64_t>({1}, {step})}},
           {"r"})[0];
}

TEST(UniformLike, IsThePhiloxStream) {
  for (const int64_t step : {0, 5}) {
    const Tensor got = drawn({}, {}, 3, step);
    const Philox stream(11, mix(stable_hash("r"), static_cast<uint64_t>(step)));
    for (size_t i = 0; i < 999; ++i)
      ASSERT_NEAR(got.data<float>()[i], stream.uniform(i), 1e-6) << i;
  }
}

TEST(UniformLike, RanksShareOneDraw) {
  const Tensor whole = drawn({}, {}, 4);
  for (int rank = 0; rank < 4; ++rank) {
    const Tensor part = drawn(Mesh({{"dp", 4}}, rank), {"dp"}, 1);
    for (size_t i = 0; i < 333; ++i)
      ASSERT_EQ(part.data<float>()[i], whole.data<float>()[static_cast<size_t>(rank) * 333 + i]);
  }
}

// A random op has nothing to compare with; its round trips are tested.
const AddCases cases("uniform_like", [](Cases& c) {
  c.add({.label = "shape", .inputs = {{"like", random({5, 3})}}, .unknown = {{"like", 0}}});
});

}  // namespace
}  // namespace fleetx::testing
