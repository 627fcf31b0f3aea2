// Gemm against sums in f64: a result may differ by what a few roundings of f32 do to its terms,
// whichever instructions the CPU has.
#include "fleetx/ops/lib/gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "fleetx/base/cpu.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/half.h"
#include "tests/support/op_case.h"
#include "tests/support/sanitized.h"

namespace fleetx::testing {
namespace {

using namespace ops;

struct Matrix {
  int64_t rows, columns, stride;
  std::vector<float> data;

  Matrix(int64_t r, int64_t c, int64_t beyond, uint64_t seed)
      : rows(r), columns(c), stride(c + beyond) {
    const Tensor values = random({rows, stride}, seed);
    data.assign(values.data<float>().begin(), values.data<float>().end());
  }
  float& at(int64_t row, int64_t column) {
    return data[static_cast<size_t>(row * stride + column)];
  }
};

struct Case {
  Gemm gemm;
  int64_t beyond = 0;  // by how much rows in memory are longer than the matrix
  bool bias = false;
};

void expect_equal_to_the_definition(const Case& test) {
  Gemm g = test.gemm;
  SCOPED_TRACE(str(g.rows, "x", g.inner, "x", g.columns, g.transpose_a ? " a^T" : "",
                   g.transpose_b ? " b^T" : "", g.accumulate ? " +=" : "", " alpha ", g.alpha));
  Matrix a = g.transpose_a ? Matrix(g.inner, g.rows, test.beyond, 1)
                           : Matrix(g.rows, g.inner, test.beyond, 1);
  Matrix b = g.transpose_b ? Matrix(g.columns, g.inner, test.beyond, 2)
                           : Matrix(g.inner, g.columns, test.beyond, 2);
  Matrix c(g.rows, g.columns, test.beyond, 3), bias(1, g.columns, 0, 4);
  const Matrix before = c;
  g.stride_a = a.stride;
  g.stride_b = b.stride;
  g.stride_c = c.stride;
  Gemm::prepare();
  g.run(a.data.data(), b.data.data(), c.data.data(), test.bias ? bias.data.data() : nullptr);
  int64_t wrong = 0;
  for (int64_t i = 0; i < g.rows; ++i)
    for (int64_t j = 0; j < c.stride; ++j) {
      const double old = before.data[static_cast<size_t>(i * c.stride + j)];
      double sum = g.accumulate || j >= g.columns ? old : test.bias ? bias.at(0, j) : 0;
      double size = std::abs(sum);
      for (int64_t k = 0; j < g.columns && k < g.inner; ++k) {
        const double term = static_cast<double>(g.alpha) *
                            static_cast<double>(g.transpose_a ? a.at(k, i) : a.at(i, k)) *
                            static_cast<double>(g.transpose_b ? b.at(j, k) : b.at(k, j));
        sum += term;
        size += std::abs(term);
      }
      wrong += !(std::abs(c.at(i, j) - sum) <= 0x1p-21 * size);
    }
  EXPECT_EQ(wrong, 0);
}

TEST(Gemm, EqualsTheDefinition) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 1, 1},
                                    {7, 5, 9},
                                    {32, 32, 32},
                                    {33, 47, 35},
                                    {64, 33, 100},
                                    {130, 300, 71},
                                    {96, 777, 48}})
        expect_equal_to_the_definition(
            {{.rows = m, .inner = k, .columns = n, .transpose_a = ta, .transpose_b = tb}});
      expect_equal_to_the_definition({{.rows = 70,
                                       .inner = 290,
                                       .columns = 45,
                                       .transpose_a = ta,
                                       .transpose_b = tb,
                                       .alpha = -0.37f,
                                       .accumulate = true},
                                      13});
      expect_equal_to_the_definition({{.rows = 96,
                                       .inner = 800,
                                       .columns = 64,
                                       .transpose_a = ta,
                                       .transpose_b = tb,
                                       .accumulate = true}});
    }
  expect_equal_to_the_definition({{.rows = 1100, .inner = 70, .columns = 300}});
  for (const int64_t inner : {30, 100, 900})
    for (const float alpha : {1.0f, 2.0f})
      expect_equal_to_the_definition(
          {{.rows = 70, .inner = inner, .columns = 100, .alpha = alpha}, 5, true});
}

// Several products with one a, and the sum of several products: what the single ones give, the sum
// but for its order. Sizes are some for sgemm, some for tiles (one group each, or one after the
// other) and some for Strassen's algorithm.
TEST(Gemm, GroupsEqualTheirProducts) {
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{9, 20, 33},
                                {100, 70, 224},
                                {70, 96, 80},
                                {512, 512, 520},
                                {512, 512, 576}})
    for (const bool turned : {false, true}) {
      // Code that is not optimised takes 25 s for a large size: each of them one way only.
      if (kSanitized && m == 512 && turned == (n == 520)) continue;
      SCOPED_TRACE(str(m, "x", k, "x", n, turned ? " transposed" : ""));
      Gemm g{.rows = m, .inner = k, .columns = n, .transpose_a = turned, .transpose_b = turned};
      Gemm::prepare();
      std::vector<Matrix> a, b, bias, c, want;
      std::vector<const void*> as, bs;
      std::vector<const float*> biases;
      std::vector<void*> cs;
      for (uint64_t i = 0; i < 3; ++i) {
        a.emplace_back(m, k, 0, 10 + i);
        b.emplace_back(k, n, 0, 20 + i);
        bias.emplace_back(1, n, 0, 30 + i);
        c.emplace_back(m, n, 0, 40 + i);
        as.push_back(a.back().data.data());
        bs.push_back(b.back().data.data());
        biases.push_back(bias.back().data.data());
        cs.push_back(c.back().data.data());
      }
      want = c;
      if (turned) biases.clear();
      for (size_t i = 0; i < 3; ++i)
        g.run(as[0], bs[i], want[i].data.data(), turned ? nullptr : biases[i]);
      g.run_each(as[0], bs, cs, biases);
      for (size_t i = 0; i < 3; ++i) EXPECT_EQ(c[i].data, want[i].data) << i;

      for (size_t i = 0; i < 3; ++i) {
        g.accumulate = turned || i > 0;
        g.run(as[i], bs[i], want[0].data.data());
      }
      g.accumulate = turned;
      g.run_sum(as, bs, cs[0]);
      double worst = 0;
      for (size_t i = 0; i < c[0].data.size(); ++i)
        worst = std::max(worst, std::abs(double{c[0].data[i]} - double{want[0].data[i]}));
      EXPECT_LT(worst, 1e-4);
    }
}

TEST(Gemm, ValuesOfAllSizes) {
  // Sums of values from 1e-30 to 1e30: each row of a has one size.
  constexpr int64_t n = 64;
  Matrix a(n, n, 0, 1), b(n, n, 0, 2), c(n, n, 0, 3);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < n; ++k) a.at(i, k) *= std::pow(10.0f, static_cast<float>(i - 30));
  Gemm::prepare();
  Gemm{.rows = n, .inner = n, .columns = n}.run(a.data.data(), b.data.data(), c.data.data());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < n; ++k) {
        sum += static_cast<double>(a.at(i, k)) * static_cast<double>(b.at(k, j));
        size += std::abs(static_cast<double>(a.at(i, k)) * static_cast<double>(b.at(k, j)));
      }
      EXPECT_NEAR(c.at(i, j), sum, 0x1p-21 * size) << i << " " << j;
    }
}

TEST(Gemm, NothingFiniteComesOfNanAndInfinity) {
  constexpr int64_t n = 64;
  for (const float bad : {NAN, -NAN, std::bit_cast<float>(0xffffffffu), INFINITY, -INFINITY}) {
    Matrix a(n, n, 0, 1), b(n, n, 0, 2), c(n, n, 0, 3);
    a.at(3, 40) = bad;
    Gemm::prepare();
    Gemm{.rows = n, .inner = n, .columns = n}.run(a.data.data(), b.data.data(), c.data.data());
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) EXPECT_EQ(std::isfinite(c.at(i, j)), i != 3);
  }
}

// A matrix in 16 bits, and what it holds.
struct HalfMatrix {
  DType dtype;
  std::vector<uint16_t> data;
  std::vector<float> values;

  HalfMatrix(DType type, int64_t n, uint64_t seed)
      : dtype(type), data(static_cast<size_t>(n)), values(static_cast<size_t>(n)) {
    narrow(random({n}, seed).data<float>().data(), dtype, data.data(), n);
    read();
  }
  void read() { widen(dtype, data.data(), values.data(), static_cast<int64_t>(data.size())); }
  const void* as(DType type) const {
    return type == f32 ? static_cast<const void*>(values.data()) : data.data();
  }
};

// Sums are those of the same values in f32; a result of 16 bits is that, rounded once.
void expect_rounded(const std::vector<float>& got, const std::vector<float>& want, DType type) {
  const double unit = type == bf16 ? 0x1p-8 : type == f16 ? 0x1p-11 : 0;
  int64_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i)
    wrong += std::abs(double{got[i]} - double{want[i]}) > unit * std::abs(want[i]) + 1e-4;
  EXPECT_EQ(wrong, 0);
}

TEST(Gemm, SixteenBitsAreComputedInF32) {
  for (const DType type : {bf16, f16})
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{9, 20, 33},
                                  {70, 96, 80},
                                  {1100, 24, 2100} /* some rows at a time */,
                                  {512, 1100, 520},
                                  {520, 512, 576},
                                  {1030, 520, 1100} /* some columns at a time */,
                                  {5, 1000, 4200} /* so many columns of b */,
                                  {5, 4200, 1000} /* so many rows of b */})
      for (const bool turned : {false, true})
        for (const auto& [of_b, of_c] :
             {std::pair{type, type}, {f32, type}, {type, f32}, {f32, f32}}) {
          // As above: each large size once.
          if (kSanitized && m >= 512 && (type == f16 || turned || of_b == f32 || of_c == f32))
            continue;
          SCOPED_TRACE(
              str(m, "x", k, "x", n, turned ? " transposed " : " ", type, " ", of_b, " ", of_c));
          Gemm wide{
              .rows = m, .inner = k, .columns = n, .transpose_a = turned, .transpose_b = turned};
          Gemm g = wide;
          g.type_a = type;
          g.type_b = of_b;
          g.type_c = of_c;
          Gemm::prepare();
          std::vector<float> scratch(static_cast<size_t>(g.scratch(2)));
          const HalfMatrix a(type, m * k, 1), other_a(type, m * k, 2), b(type, k * n, 3),
              other_b(type, k * n, 4);
          const Matrix bias(1, n, 0, 5);
          HalfMatrix c(type, m * n, 6), c2 = c;
          std::vector<float> want = c.values, want2 = c.values;
          const auto result = [&](HalfMatrix& of) -> void* {
            return of_c == f32 ? static_cast<void*>(of.values.data()) : of.data.data();
          };
          const auto values = [&](HalfMatrix& of) {
            if (of_c != f32) of.read();
            return of.values;
          };
          wide.run(a.values.data(), b.values.data(), want.data(), bias.data.data());
          g.run(a.as(type), b.as(of_b), result(c), bias.data.data(), nullptr, scratch.data());
          expect_rounded(values(c), want, of_c);

          const std::vector<const void*> bs{b.as(of_b), other_b.as(of_b)},
              as{a.as(type), other_a.as(type)};
          const std::vector<void*> cs{result(c), result(c2)};
          wide.run(a.values.data(), other_b.values.data(), want2.data());
          g.run_each(a.as(type), bs, cs, {}, nullptr, scratch.data());
          expect_rounded(values(c2), want2, of_c);

          // From c2 on, two products more.
          want2 = c2.values;
          wide.accumulate = g.accumulate = true;
          wide.run(a.values.data(), b.values.data(), want2.data());
          wide.run(other_a.values.data(), other_b.values.data(), want2.data());
          g.run_sum(as, bs, result(c2), scratch.data());
          expect_rounded(values(c2), want2, of_c);
        }
}

// Of a few rows and a table of words, not all of the table is in f32 at once.
TEST(Gemm, ALargeMatrixOf16BitsIsConvertedInParts) {
  for (const bool turned : {false, true}) {
    const int64_t words = 30522, width = 768, rows = 100;
    const Gemm g{.rows = rows,
                 .inner = turned ? words : width,
                 .columns = turned ? width : words,
                 .type_a = bf16,
                 .type_b = bf16,
                 .type_c = bf16};
    EXPECT_LT(g.scratch(), words * width / 8);
  }
}

TEST(Gemm, TilesGiveTheSameBitsOnEveryNumberOfThreads) {
  if (cpu::best_isa() < cpu::Isa::kAmx) GTEST_SKIP() << "no tiles here";
  const Gemm g{.rows = 320, .inner = 500, .columns = 290};
  Matrix a(320, 500, 0, 1), b(500, 290, 0, 2), one(320, 290, 0, 3), many = one;
  const int before = num_threads();
  Gemm::prepare();
  set_num_threads(1);
  g.run(a.data.data(), b.data.data(), one.data.data());
  for (const int threads : {2, 3, 4}) {
    set_num_threads(threads);
    g.run(a.data.data(), b.data.data(), many.data.data());
    EXPECT_EQ(one.data, many.data) << threads;
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace fleetx::testing
