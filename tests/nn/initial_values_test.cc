// What the startup program really puts into parameters.
#include <cmath>

#include "fleetx/base/threads.h"
#include "fleetx/runtime/executor.h"
#include "tests/nn/net.h"

namespace fleetx::testing {
namespace {

std::vector<float> values(const nn::Init& init, const std::string& name = "w", int threads = 1) {
  const int before = num_threads();
  set_num_threads(threads);
  Net net;
  nn::fc(net.b.data("x", f32, {-1, 200}),
         {.size = 300, .bias = false, .weight_attr = {.name = name, .init = init}});
  runtime::Scope scope;
  runtime::Executor().run(net.startup, scope);
  set_num_threads(before);
  const Tensor t = scope.get(name);
  const auto data = t.data<float>();
  return {data.begin(), data.end()};
}

struct Moments {
  double mean = 0, std = 0, low = 1e30, high = -1e30;
};
Moments moments(const std::vector<float>& v) {
  Moments m;
  double squares = 0;
  for (const double x : v) {
    m.mean += x;
    squares += x * x;
    m.low = std::min(m.low, x);
    m.high = std::max(m.high, x);
  }
  const auto n = static_cast<double>(v.size());
  m.mean /= n;
  m.std = std::sqrt(squares / n - m.mean * m.mean);
  return m;
}

TEST(InitialValues, HaveTheAskedMoments) {
  struct Case {
    nn::Init init;
    double mean, std;
  };
  const double cut = 0.87963;  // std of a standard normal cut at two
  for (const Case& c :
       {Case{nn::init::constant(3), 3, 0}, Case{nn::init::uniform(0, 6), 3, std::sqrt(3.0)},
        Case{nn::init::normal(1, 2), 1, 2}, Case{nn::init::truncated_normal(1, 2), 1, 2 * cut},
        Case{nn::init::xavier_uniform(), 0, std::sqrt(2.0 / 500)},
        Case{nn::init::xavier_normal(), 0, std::sqrt(2.0 / 500)},
        Case{nn::init::msra_uniform(), 0, std::sqrt(2.0 / 200)},
        Case{nn::init::msra_normal(), 0, std::sqrt(2.0 / 200)}}) {
    const Moments m = moments(values(c.init));
    // 60,000 values: five standard errors of the mean are 0.02 std, of the std about 0.015.
    EXPECT_NEAR(m.mean, c.mean, 0.02 * c.std + 1e-6) << c.init({200, 300}).op;
    EXPECT_NEAR(m.std, c.std, 0.015 * c.std + 1e-6) << c.init({200, 300}).op;
  }
}

TEST(InitialValues, StayWithinBounds) {
  const Moments uniform = moments(values(nn::init::uniform(-1, 2)));
  EXPECT_GE(uniform.low, -1);
  EXPECT_LT(uniform.high, 2);
  const Moments truncated = moments(values(nn::init::truncated_normal(0, 1)));
  EXPECT_GE(truncated.low, -2);
  EXPECT_LE(truncated.high, 2);
  EXPECT_GT(truncated.high, 1.99);
}

TEST(InitialValues, DependOnNameAndSeedOnly) {
  const nn::Init init = nn::init::normal(0, 1);
  EXPECT_EQ(values(init, "w", 1), values(init, "w", 2));
  EXPECT_NE(values(init, "w"), values(init, "v"));
  EXPECT_NE(values(init), values(nn::init::normal(0, 1, 7)));
}

TEST(InitialValues, CanBeGiven) {
  Net net;
  nn::fc(net.b.data("x", f32, {-1, 2}),
         {.size = 2,
          .bias = false,
          .weight_attr = {.name = "w", .init = nn::init::assign({1, 2, 3, 4.5})}});
  runtime::Scope scope;
  runtime::Executor().run(net.startup, scope);
  const Tensor t = scope.get("w");
  EXPECT_EQ(std::vector<float>(t.data<float>().begin(), t.data<float>().end()),
            (std::vector<float>{1, 2, 3, 4.5f}));
}

}  // namespace
}  // namespace fleetx::testing
