// Strassen's algorithm against sums in f64, whichever way Gemm itself takes on this CPU.
#include "fleetx/ops/lib/gemm_strassen.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

using namespace ops;

class Strassen : public ::testing::Test {
 protected:
  void SetUp() override {
    if (vector_isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "needs AVX2";
    Gemm::prepare();
  }
};

struct Operands {
  std::vector<float> a, b, c, bias;
  int64_t stride_a, stride_b, stride_c;

  // Rows in memory are longer than the matrices by `beyond`.
  Operands(const Gemm& g, int64_t beyond)
      : stride_a((g.transpose_a ? g.rows : g.inner) + beyond),
        stride_b((g.transpose_b ? g.inner : g.columns) + beyond),
        stride_c(g.columns + beyond) {
    const auto fill = [](int64_t n, uint64_t seed) {
      const Tensor values = random({n}, seed);
      return std::vector<float>(values.data<float>().begin(), values.data<float>().end());
    };
    a = fill((g.transpose_a ? g.inner : g.rows) * stride_a, 1);
    b = fill((g.transpose_b ? g.columns : g.inner) * stride_b, 2);
    c = fill(g.rows * stride_c, 3);
    bias = fill(g.columns, 4);
  }
  void run(const Gemm& g, bool with_bias) {
    const strassen::Columns all{
        {b.data(), stride_b}, {c.data(), stride_c}, with_bias ? bias.data() : nullptr};
    strassen::run(g, {a.data(), stride_a}, {&all, 1});
  }
  double product(const Gemm& g, int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t k = 0; k < g.inner; ++k)
      sum += static_cast<double>(
                 a[static_cast<size_t>(g.transpose_a ? k * stride_a + i : i * stride_a + k)]) *
             static_cast<double>(
                 b[static_cast<size_t>(g.transpose_b ? j * stride_b + k : k * stride_b + j)]);
    return static_cast<double>(g.alpha) * sum;
  }
};

// Every element, but of large products only some of the rows.
void expect_equal_to_the_definition(const Gemm& g, int64_t beyond = 0, bool bias = false) {
  SCOPED_TRACE(str(g.rows, "x", g.inner, "x", g.columns, g.transpose_a ? " a^T" : "",
                   g.transpose_b ? " b^T" : "", g.accumulate ? " +=" : "", " alpha ", g.alpha));
  Operands x(g, beyond);
  const std::vector<float> before = x.c;
  x.run(g, bias);
  // About eight times the deviation to be expected of values between -1 and 1.
  const double allowed =
      0x1p-19 * std::abs(static_cast<double>(g.alpha)) * std::sqrt(static_cast<double>(g.inner));
  int64_t wrong = 0;
  const int64_t every = g.rows > 200 ? 7 : 1;
  for (int64_t i = 0; i < g.rows; i += every)
    for (int64_t j = 0; j < x.stride_c; ++j) {
      const auto at = static_cast<size_t>(i * x.stride_c + j);
      if (j >= g.columns) {
        wrong += x.c[at] != before[at];
        continue;
      }
      const double start = g.accumulate ? before[at] : bias ? x.bias[static_cast<size_t>(j)] : 0;
      wrong += !(std::abs(x.c[at] - start - x.product(g, i, j)) <= allowed);
    }
  EXPECT_EQ(wrong, 0);
}

TEST_F(Strassen, EqualsTheDefinition) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      // Less than a tile; exactly tiles; borders everywhere; several blocks of inner elements.
      for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 1, 1},
                                    {7, 5, 9},
                                    {32, 64, 96},
                                    {33, 47, 100},
                                    {61, 1100, 203}})
        expect_equal_to_the_definition(
            {.rows = m, .inner = k, .columns = n, .transpose_a = ta, .transpose_b = tb});
      expect_equal_to_the_definition({.rows = 40,
                                      .inner = 600,
                                      .columns = 70,
                                      .transpose_a = ta,
                                      .transpose_b = tb,
                                      .alpha = -0.37f,
                                      .accumulate = true},
                                     13);
    }
  expect_equal_to_the_definition({.rows = 1100, .inner = 30, .columns = 50});  // two blocks of rows
  for (const int64_t inner : {30, 600})
    for (const float alpha : {1.0f, 2.0f})
      expect_equal_to_the_definition({.rows = 70, .inner = inner, .columns = 100, .alpha = alpha},
                                     5, true);
}

TEST_F(Strassen, ErrorsAreAtMostFourTimesThoseOfPlainSums) {
  const Gemm g{.rows = 64, .inner = 1024, .columns = 192};
  Operands x(g, 0);
  x.run(g, false);
  double ours = 0, plain = 0;
  for (int64_t i = 0; i < g.rows; ++i)
    for (int64_t j = 0; j < g.columns; ++j) {
      // As sgemm does it: sums of some hundred terms, then their sum.
      float sum = 0;
      for (int64_t k = 0; k < g.inner;) {
        float part = 0;
        for (const int64_t end = k + 256; k < end; ++k)
          part += x.a[static_cast<size_t>(i * g.inner + k)] *
                  x.b[static_cast<size_t>(k * g.columns + j)];
        sum += part;
      }
      const double exact = x.product(g, i, j);
      ours += std::pow(x.c[static_cast<size_t>(i * g.columns + j)] - exact, 2);
      plain += std::pow(sum - exact, 2);
    }
  EXPECT_LT(std::sqrt(ours), 4 * std::sqrt(plain));
}

TEST_F(Strassen, TheSameBitsOnEveryNumberOfThreads) {
  const Gemm g{.rows = 330, .inner = 540, .columns = 530};
  Operands one(g, 0), many = one;
  const int before = num_threads();
  set_num_threads(1);
  one.run(g, true);
  for (const int threads : {2, 3, 4}) {
    set_num_threads(threads);
    many.run(g, true);
    EXPECT_EQ(one.c, many.c) << threads;
  }
  set_num_threads(before);
}

TEST_F(Strassen, OnlyLargeProductsAndOnlyIfAllowed) {
  EXPECT_TRUE(strassen::wanted({.rows = 512, .inner = 512, .columns = 512}));
  EXPECT_FALSE(strassen::wanted({.rows = 512, .inner = 511, .columns = 512}));
  EXPECT_EQ(strassen::wanted({.rows = 160, .inner = 512, .columns = 512}),
            vector_isa() == cpu::Isa::kAvx2);
  EXPECT_FALSE(strassen::wanted({.rows = 512, .inner = 512, .columns = 512, .definition = true}));
}

// FLEETX_SKIP=strassen, for fc and its gradient and for matmul.
TEST_F(Strassen, CanBeSwitchedOff) {
  if (cpu::best_isa() >= cpu::Isa::kAmx) GTEST_SKIP() << "large products are made of tiles here";
  for (const bool skip : {false, true}) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    runtime::Scope scope;
    const ir::Var x = b.data("x", f32, {512, 512}), w = b.data("w", f32, {512, 512});
    const ir::Var y = b.op("matmul", {{"x", x}, {"y", w}});
    const ir::Var z = b.op("fc", {{"x", y}, {"w", w}});
    const ir::Results d =
        b.op("fc_grad", {{"x", y}, {"w", w}, {"dout", z}}, {}, {{"dx", "dx"}, {"dw", "dw"}});
    runtime::ExecutorOptions options;
    if (skip) options.plan.skip = {"strassen"};
    runtime::Executor exe(options);
    const runtime::Feeds feeds{{"x", random({512, 512}, 1)}, {"w", random({512, 512}, 2)}};
    int used = 0;
    for (const runtime::Step& step :
         exe.plan(main, scope, feeds, {d["dx"].name(), d["dw"].name()}).steps())
      used += step.kernel->implementation() == "own:strassen";
    EXPECT_EQ(used, skip ? 0 : 3);
  }
}

}  // namespace
}  // namespace fleetx::testing
