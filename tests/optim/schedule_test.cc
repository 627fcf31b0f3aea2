#include "fleetx/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "fleetx/ir/transform.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::optim {
namespace {

using testing::expect_error;
using testing::filled;

// A program that trains one number with a schedule; its gradient is fed.
class Training {
 public:
  explicit Training(const std::function<Var(ir::Builder&)>& schedule) : b(main, startup) {
    lr = schedule(b);
    const Var w = b.parameter({.name = "w", .shape = {1}});
    Sgd opt({.lr = lr});
    opt.apply_gradients({{w, b.data("dw", f32, {1})}});
    exe.run(startup, scope);
  }
  double run() {
    return exe.run(main, scope, {{"dw", filled({1}, 1.0f)}}, {lr.name()})[0].item<float>();
  }

  ir::Program main, startup;
  ir::Builder b;
  Var lr;
  runtime::Scope scope;
  runtime::Executor exe;
};

void expect_schedule(const std::function<Var(ir::Builder&)>& schedule,
                     const std::function<double(double)>& formula) {
  Training t(schedule);
  for (int step = 0; step < 20; ++step) {
    const double want = formula(step);
    EXPECT_NEAR(t.run(), want, 1e-6 * (1e-3 + std::abs(want))) << "step " << step;
  }
  // Far away, and around whole multiples of common lengths, where rounding would show.
  for (const int64_t step : {97, 98, 99, 195, 196, 4899, 4900, 4901, 9800000, 9800001}) {
    t.scope.set("@step@", Tensor::scalar(step));
    const double want = formula(static_cast<double>(step));
    EXPECT_NEAR(t.run(), want, 1e-6 * (1e-3 + std::abs(want))) << "step " << step;
  }
}

TEST(Schedule, Constant) {
  expect_schedule([](ir::Builder& b) { return constant(b, 0.3); }, [](double) { return 0.3; });
}

TEST(Schedule, Piecewise) {
  expect_schedule(
      [](ir::Builder& b) {
        return piecewise(b, {5, 10}, {1.0, 0.5, 0.1});
      },
      [](double n) { return n < 5    ? 1.0
                            : n < 10 ? 0.5
                                     : 0.1; });
}

TEST(Schedule, Exponential) {
  expect_schedule([](ir::Builder& b) { return exponential(b, 0.2, {.steps = 7, .rate = 0.9}); },
                  [](double n) { return 0.2 * std::pow(0.9, n / 7); });
  expect_schedule(
      [](ir::Builder& b) {
        return exponential(b, 0.2, {.steps = 49, .rate = 0.9, .staircase = true});
      },
      [](double n) { return 0.2 * std::pow(0.9, std::floor(n / 49)); });
}

TEST(Schedule, StepDecay) {
  expect_schedule([](ir::Builder& b) { return step_decay(b, 0.2, 6, 0.5); },
                  [](double n) { return 0.2 * std::pow(0.5, std::floor(n / 6)); });
}

TEST(Schedule, NaturalExp) {
  expect_schedule([](ir::Builder& b) { return natural_exp(b, 0.2, {.steps = 7, .rate = 0.9}); },
                  [](double n) { return 0.2 * std::exp(-0.9 * n / 7); });
  expect_schedule(
      [](ir::Builder& b) {
        return natural_exp(b, 0.2, {.steps = 7, .rate = 0.9, .staircase = true});
      },
      [](double n) { return 0.2 * std::exp(-0.9 * std::floor(n / 7)); });
}

TEST(Schedule, InverseTime) {
  expect_schedule([](ir::Builder& b) { return inverse_time(b, 0.2, {.steps = 7, .rate = 0.9}); },
                  [](double n) { return 0.2 / (1 + 0.9 * n / 7); });
  expect_schedule(
      [](ir::Builder& b) {
        return inverse_time(b, 0.2, {.steps = 49, .rate = 0.9, .staircase = true});
      },
      [](double n) { return 0.2 / (1 + 0.9 * std::floor(n / 49)); });
}

TEST(Schedule, Polynomial) {
  for (const double power : {1.0, 0.5, 2.0})
    expect_schedule(
        [=](ir::Builder& b) {
          return polynomial(b, 0.2, {.steps = 11, .end = 0.01, .power = power});
        },
        [=](double n) { return 0.19 * std::pow(1 - std::min(n, 11.0) / 11, power) + 0.01; });
}

TEST(Schedule, PolynomialCycle) {
  expect_schedule(
      [](ir::Builder& b) {
        return polynomial(b, 0.2, {.steps = 7, .end = 0.01, .power = 0.5, .cycle = true});
      },
      [](double n) {
        const double end = 7 * std::max(1.0, std::ceil(n / 7));
        return 0.19 * std::sqrt(1 - n / end) + 0.01;
      });
}

TEST(Schedule, Cosine) {
  expect_schedule(
      [](ir::Builder& b) { return cosine(b, 0.2, 3, 6); },
      [](double n) { return 0.1 * (std::cos(std::floor(n / 3) * std::numbers::pi / 6) + 1); });
}

TEST(Schedule, Noam) {
  expect_schedule([](ir::Builder& b) { return noam(b, 64, 8, 2.0); },
                  [](double n) {
                    return 2.0 / 8.0 *
                           std::min(std::pow(n + 1, -0.5), (n + 1) * std::pow(8.0, -1.5));
                  });
}

TEST(Schedule, WarmUpAroundAnother) {
  expect_schedule(
      [](ir::Builder& b) {
        return warm_up(piecewise(b, {8}, {0.5, 0.25}), 6, 0.01, 0.5);
      },
      [](double n) { return n < 6   ? 0.01 + 0.49 * n / 6
                            : n < 8 ? 0.5
                                    : 0.25; });
  expect_schedule([](ir::Builder& b) { return warm_up(b, 0.7, 5, 0.0, 0.7); },
                  [](double n) { return n < 5 ? 0.7 * n / 5 : 0.7; });
}

TEST(Schedule, TheUpdateSeesTheRateOfItsStep) {
  Training t([](ir::Builder& b) { return piecewise(b, {1, 2}, {0.5, 0.25, 0.125}); });
  for (const float want : {-0.5f, -0.75f, -0.875f, -1.0f}) {
    t.run();
    EXPECT_FLOAT_EQ(t.scope.get("w").item<float>(), want);
  }
  EXPECT_EQ(t.scope.get("@step@").item<int64_t>(), 4);
}

TEST(Schedule, GoesOnFromASavedScope) {
  const auto make = [](ir::Builder& b) { return noam(b, 16, 5); };
  Training one(make), two(make);
  for (int i = 0; i < 4; ++i) one.run();
  for (const std::string& name : one.scope.names()) two.scope.set(name, one.scope.get(name));
  EXPECT_EQ(one.run(), two.run());
}

TEST(Schedule, CountsStepsWithoutAnOptimizer) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const Var first = piecewise(b, {1, 2}, {0.5, 0.25, 0.125});
  const Var second = exponential(b, 1.0, {.steps = 1, .rate = 0.5});
  runtime::Scope scope;
  runtime::Executor exe;
  exe.run(startup, scope);
  for (const auto& [one, other] : {std::pair{0.5f, 1.0f}, {0.25f, 0.5f}, {0.125f, 0.25f}}) {
    const auto rates = exe.run(main, scope, {}, {first.name(), second.name()});
    EXPECT_FLOAT_EQ(rates[0].item<float>(), one);
    EXPECT_FLOAT_EQ(rates[1].item<float>(), other);
  }
}

TEST(Schedule, IsNotPartOfATestProgram) {
  const Training t([](ir::Builder& b) { return warm_up(cosine(b, 0.1, 5, 5), 3, 0.0, 0.1); });
  EXPECT_TRUE(ir::clone_for_test(t.main).ops().empty());
}

TEST(Schedule, RefusesNoSteps) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  expect_error(Error::Kind::kInvalidArgument, {"polynomial", "positive", "0"},
               [&] { polynomial(b, 0.1, {.steps = 0}); });
  expect_error(Error::Kind::kInvalidArgument, {"exponential", "rate", "-1"},
               [&] { exponential(b, 0.1, {.steps = 5, .rate = -1.0}); });
  expect_error(Error::Kind::kInvalidArgument, {"2 values and 2 boundaries"}, [&] {
    piecewise(b, {1, 2}, {0.1, 0.2});
  });
}

}  // namespace
}  // namespace fleetx::optim
