#include <gtest/gtest.h>

#include <cmath>

#include "fleetx/base/rng.h"
#include "fleetx/base/threads.h"
#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

Tensor draw(const std::string& op, const ir::Attrs& attrs, std::optional<int64_t> step = {},
            const std::string& name = "r") {
  ir::Program main, startup;
  main.set_seed(11);
  ir::Builder b(main, startup);
  ir::Var at;
  runtime::Feeds feeds;
  if (step) {
    at = b.data("at", i64, {1});
    feeds.emplace_back("at", Tensor::of<int64_t>({1}, {*step}));
  }
  const ir::Var out = b.op(op, {{"step", at}}, attrs, {{"out", name}});
  runtime::Scope scope;
  runtime::Executor exe;
  return exe.run(main, scope, feeds, {out.name()})[0];
}

Philox stream(int64_t step = 0) { return {11, mix(stable_hash("r"), static_cast<uint64_t>(step))}; }

TEST(Random, UniformIsThePhiloxStream) {
  const Tensor got = draw("uniform", {{"shape", ir::Ints{1003}}, {"low", -2.0}, {"high", 6.0}});
  for (size_t i = 0; i < 1003; ++i)
    ASSERT_NEAR(got.data<float>()[i], -2.0f + 8.0f * stream().uniform(i), 1e-6) << i;
}

TEST(Random, GaussianIsThePhiloxStream) {
  const Tensor got = draw("gaussian", {{"shape", ir::Ints{70001}}, {"mean", 3.0}, {"std", 2.0}});
  for (size_t i = 0; i < 70001; ++i)
    ASSERT_NEAR(got.data<float>()[i], 3.0f + 2.0f * stream().normal(i), 1e-5) << i;
}

TEST(Random, StepChoosesTheStream) {
  const ir::Attrs attrs{{"shape", ir::Ints{8}}, {"low", 0.0}, {"high", 1.0}};
  const Tensor got = draw("uniform", attrs, 5);
  for (size_t i = 0; i < 8; ++i) ASSERT_NEAR(got.data<float>()[i], stream(5).uniform(i), 1e-6);
}

TEST(Random, NameAndSeedChooseTheStream) {
  const auto first = [](const Tensor& t) { return t.data<float>()[0]; };
  const float base = first(draw("uniform", {{"shape", ir::Ints{4}}}));
  EXPECT_NE(first(draw("uniform", {{"shape", ir::Ints{4}}}, {}, "other")), base);
  EXPECT_NE(first(draw("uniform", {{"shape", ir::Ints{4}}, {"seed", 3}})), base);
  EXPECT_EQ(first(draw("uniform", {{"shape", ir::Ints{4}}})), base);
}

TEST(Random, BitsDoNotDependOnThreads) {
  const int before = num_threads();
  for (const char* op : {"uniform", "gaussian", "truncated_gaussian"}) {
    set_num_threads(1);
    const Tensor one = draw(op, {{"shape", ir::Ints{100001}}});
    set_num_threads(3);
    const Tensor three = draw(op, {{"shape", ir::Ints{100001}}});
    EXPECT_TRUE(
        std::equal(one.data<float>().begin(), one.data<float>().end(), three.data<float>().begin()))
        << op;
  }
  set_num_threads(before);
}

// The share of values below x, against the distribution function.
double largest_gap(const Tensor& t, double (*cdf)(double)) {
  std::vector<float> v(t.data<float>().begin(), t.data<float>().end());
  std::sort(v.begin(), v.end());
  double gap = 0;
  for (size_t i = 0; i < v.size(); ++i)
    gap = std::max(gap, std::abs((static_cast<double>(i) + 0.5) / static_cast<double>(v.size()) -
                                 cdf(static_cast<double>(v[i]))));
  return gap;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double truncated_cdf(double x) {
  return (normal_cdf(x) - normal_cdf(-2)) / (normal_cdf(2) - normal_cdf(-2));
}

TEST(Random, ValuesFollowTheirDistribution) {
  // A Kolmogorov-Smirnov gap of 2 / sqrt(n) is passed with probability 0.0007.
  const ir::Attrs attrs{{"shape", ir::Ints{1 << 18}}};
  const double limit = 2.0 / std::sqrt(static_cast<double>(1 << 18));
  EXPECT_LT(largest_gap(draw("gaussian", attrs), normal_cdf), limit);
  EXPECT_LT(largest_gap(draw("truncated_gaussian", attrs), truncated_cdf), limit);
  EXPECT_LT(largest_gap(draw("uniform", attrs), [](double x) { return (x + 1) / 2; }), limit);
}

TEST(Random, TruncatedGaussianStaysWithinTwoDeviations) {
  const Tensor got =
      draw("truncated_gaussian", {{"shape", ir::Ints{100000}}, {"mean", 1.0}, {"std", 0.5}});
  const auto [low, high] = std::minmax_element(got.data<float>().begin(), got.data<float>().end());
  EXPECT_GE(*low, 0.0f);
  EXPECT_LE(*high, 2.0f);
  EXPECT_LT(*low, 0.001f);
  EXPECT_GT(*high, 1.999f);
}

TEST(Random, RandintCoversItsRange) {
  const Tensor got = draw("randint", {{"shape", ir::Ints{6000}}, {"low", -3}, {"high", 3}});
  std::map<int64_t, int> count;
  for (const int64_t v : got.data<int64_t>()) ++count[v];
  EXPECT_EQ(count.size(), 6u);
  EXPECT_EQ(count.begin()->first, -3);
  for (const auto& [value, times] : count) EXPECT_NEAR(times, 1000, 150) << value;
}

TEST(Random, DoublesAndSmallIntegers) {
  EXPECT_EQ(draw("gaussian", {{"shape", ir::Ints{5}}, {"dtype", "f64"}}).dtype(), f64);
  EXPECT_EQ(draw("randint", {{"shape", ir::Ints{5}}, {"high", 9}, {"dtype", "i32"}}).dtype(), i32);
}

TEST(Random, BadAttributesAreNamed) {
  const auto expect = [](const std::string& op, const ir::Attrs& attrs, const std::string& part) {
    try {
      draw(op, attrs);
      FAIL() << "no error";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  };
  expect("uniform", {{"shape", ir::Ints{-1}}}, "every dimension must be known");
  expect("uniform", {{"shape", ir::Ints{2}}, {"dtype", "i64"}}, "expected f32 or f64");
  expect("randint", {{"shape", ir::Ints{2}}, {"low", 5}, {"high", 5}},
         "low must be the smaller one");
}

const std::vector<AddCases> cases = [] {
  std::vector<AddCases> out;
  for (const char* op : {"uniform", "gaussian", "truncated_gaussian"})
    out.emplace_back(op, [](Cases& c) {
      // Values are tested above; here the text forms, and the speed.
      c.add({.label = "small",
             .inputs = {},
             .attrs = {{"shape", ir::Ints{5, 7}}, {"seed", 3}},
             .reference = {}});
      if (c.timed)
        c.add({.label = "perf",
               .inputs = {},
               .attrs = {{"shape", ir::Ints{1 << 20}}},
               .reference = {},
               .perf = true});
    });
  out.emplace_back("randint", [](Cases& c) {
    c.add({.label = "small",
           .inputs = {},
           .attrs = {{"shape", ir::Ints{5}}, {"high", 10}},
           .reference = {}});
  });
  return out;
}();

}  // namespace
}  // namespace fleetx::testing
