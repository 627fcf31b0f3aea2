// clip_rows, and the sparse side of clip_by_norm and squared_l2_norm. The op rows_of, which makes
// sparse gradients, is in optimizer_test.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

// Six rows of width 3 for a table of 5 rows; ids 1 and 4 stand there more than once.
class Rows : public ::testing::Test {
 protected:
  Rows() : ids(Tensor::of<int64_t>({6}, {4, 1, 4, 0, 1, 4})), values(random({6, 3})) {
    table = b.state("table", f32, {5, 3});
    scope.set("table", Tensor(f32, {5, 3}));
    rows = b.op("test_rows_of", {{"ids", b.data("ids", i64, {6})},
                                 {"values", b.data("values", f32, {6, 3})},
                                 {"table", table}});
    for (size_t i = 0; i < 6; ++i)
      for (size_t k = 0; k < 3; ++k)
        sum.data<float>()[3 * static_cast<size_t>(ids.data<int64_t>()[i]) + k] +=
            values.data<float>()[3 * i + k];
  }

  Tensor fetch(const ir::Var& v) {
    return exe.run(main, scope, {{"ids", ids}, {"values", values}}, {v.name()})[0];
  }
  // A zero table minus (-1) times a sparse gradient is its dense form.
  Tensor dense(const ir::Var& sparse) {
    scope.set("lr", filled({1}, -1.0f));
    b.op("sgd", {{"param", table}, {"grad", sparse}, {"lr", b.state("lr", f32, {1})}}, {},
         {{"param_out", table}});
    return fetch(table);
  }
  double norm() const {
    double squares = 0;
    for (const float v : sum.data<float>()) squares += static_cast<double>(v) * v;
    return std::sqrt(squares);
  }

  ir::Program main, startup;
  ir::Builder b{main, startup};
  runtime::Scope scope;
  runtime::Executor exe;
  ir::Var table, rows;
  Tensor ids, values, sum{f32, {5, 3}};
};

TEST_F(Rows, AreAddedUpAndClipped) {
  const ir::Var clipped = b.op("clip_rows", {{"x", rows}}, {{"min", -0.4}, {"max", 0.3}});
  expect_close(dense(clipped), map(sum, [](float v) { return std::clamp(v, -0.4f, 0.3f); }), 1e-6,
               "clipped");
}

TEST_F(Rows, AreScaledToANorm) {
  const auto half = static_cast<float>(norm() / 2);
  const ir::Var clipped = b.op("clip_by_norm", {{"x", rows}}, {{"max_norm", half}});
  expect_close(dense(clipped), map(sum, [](float v) { return v / 2; }), 1e-6, "clipped");
}

TEST_F(Rows, HaveTheNormOfTheirSums) {
  const ir::Var both = b.op("squared_l2_norm", {{"xs", {rows, b.state("other", f32, {2})}}});
  scope.set("other", filled({2}, 3.0f));
  EXPECT_NEAR(fetch(both).item<float>(), norm() * norm() + 18.0, 1e-4);
}

TEST_F(Rows, ClippingMustKeepZero) {
  expect_error(Error::Kind::kInvalidArgument, {"clip_rows", "between", "0.5"}, [&] {
    b.op("clip_rows", {{"x", rows}}, {{"min", 0.5}, {"max", 1.0}});
  });
}

}  // namespace
}  // namespace fleetx::testing
