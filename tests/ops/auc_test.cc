#include <gtest/gtest.h>

#include <cmath>

#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

// The chance that a positive example has the higher bin than a negative one; equal bins count half.
double auc_of(const std::vector<std::pair<Tensor, Tensor>>& batches, int thresholds) {
  std::vector<int> pos, neg;
  for (const auto& [x, label] : batches) {
    for (int64_t i = 0; i < label.numel(); ++i) {
      const int bin = static_cast<int>(
          static_cast<double>(x.data<float>()[static_cast<size_t>(i)]) * thresholds);
      (label.data<int64_t>()[static_cast<size_t>(i)] ? pos : neg).push_back(bin);
    }
  }
  double won = 0;
  for (const int p : pos)
    for (const int n : neg) won += p > n ? 1.0 : p == n ? 0.5 : 0.0;
  return won / static_cast<double>(pos.size()) / static_cast<double>(neg.size());
}

class Measuring {
 public:
  Measuring(int thresholds, int slide_steps, int64_t states, Shape x = {-1, 1}) : b(main, startup) {
    for (const char* name : {"pos", "neg"}) {
      b.state(name, i64, {states});
      scope.set(name, Tensor(i64, {states}));
    }
    b.op("auc",
         {{"x", b.data("x", f32, std::move(x))},
          {"label", b.data("label", i64, {-1, 1})},
          {"stat_pos", b.var("pos")},
          {"stat_neg", b.var("neg")}},
         {{"num_thresholds", thresholds}, {"slide_steps", slide_steps}},
         {{"out", "auc"}, {"stat_pos_out", "pos"}, {"stat_neg_out", "neg"}});
  }
  double run(const Tensor& x, const Tensor& label) {
    return exe.run(main, scope, {{"x", x}, {"label", label}}, {"auc"})[0].item<float>();
  }

  ir::Program main, startup;
  ir::Builder b;
  runtime::Scope scope;
  runtime::Executor exe;
};

std::pair<Tensor, Tensor> batch(uint64_t salt) {
  return {random({40, 1}, salt, 0.0f, 1.0f), random_ints({40, 1}, 0, 2, salt)};
}

TEST(Auc, CountsAllBatches) {
  Measuring m(50, 0, 51);
  std::vector<std::pair<Tensor, Tensor>> seen;
  for (uint64_t step = 0; step < 4; ++step) {
    seen.push_back(batch(step));
    EXPECT_NEAR(m.run(seen.back().first, seen.back().second), auc_of(seen, 50), 1e-6);
  }
}

TEST(Auc, OrOnlyTheLastOnes) {
  Measuring m(50, 2, 3 * 51 + 1);
  std::vector<std::pair<Tensor, Tensor>> seen;
  for (uint64_t step = 0; step < 6; ++step) {
    seen.push_back(batch(step));
    if (seen.size() > 2) seen.erase(seen.begin());
    EXPECT_NEAR(m.run(seen.back().first, seen.back().second), auc_of(seen, 50), 1e-6) << step;
  }
}

TEST(Auc, PerfectReversedAndOneClass) {
  const Tensor x = Tensor::of<float>({4, 1}, {0.0f, 0.2f, 0.7f, 1.0f});
  EXPECT_EQ(Measuring(4095, 0, 4096).run(x, Tensor::of<int64_t>({4, 1}, {0, 0, 1, 1})), 1.0);
  EXPECT_EQ(Measuring(4095, 0, 4096).run(x, Tensor::of<int64_t>({4, 1}, {1, 1, 0, 0})), 0.0);
  EXPECT_EQ(Measuring(4095, 0, 4096).run(x, Tensor::of<int64_t>({4, 1}, {1, 1, 1, 1})), 0.0);
}

TEST(Auc, TakesTheColumnOfThePositiveClass) {
  Measuring m(100, 0, 101, {-1, 2});
  const Tensor x = Tensor::of<float>({2, 2}, {0.9f, 0.1f, 0.2f, 0.8f});
  EXPECT_EQ(m.run(x, Tensor::of<int64_t>({2, 1}, {0, 1})), 1.0);
}

TEST(Auc, NamesABadPrediction) {
  for (const float bad : {1.5f, -0.1f, NAN})
    expect_error(Error::Kind::kInvalidArgument, {"auc", "position 1", "[0, 1]"}, [&] {
      Measuring(10, 0, 11).run(Tensor::of<float>({2, 1}, {0.5f, bad}),
                               Tensor::of<int64_t>({2, 1}, {0, 1}));
    });
}

TEST(Auc, RefusesAStateOfTheWrongSize) {
  expect_error(Error::Kind::kInvalidArgument, {"stat_pos must be i64[11]", "i64[10]"},
               [] { Measuring(10, 0, 10); });
}

const AddCases cases("auc", [](Cases& c) {
  c.add({.label = "i32",
         .inputs = {OpInput("x", Tensor::of<float>({3}, {0.1f, 0.95f, 0.95f})),
                    OpInput("label", Tensor::of<int32_t>({3}, {0, 1, 0})),
                    OpInput("stat_pos", Tensor(i64, {11})).state(),
                    OpInput("stat_neg", Tensor(i64, {11})).state()},
         .attrs = {{"num_thresholds", 10}},
         .updates = {{"stat_pos_out", "stat_pos"}, {"stat_neg_out", "stat_neg"}},
         .reference = [](const Tensors&) -> Tensors {
           return {Tensor::scalar(0.75f),
                   Tensor::of<int64_t>({11}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}),
                   Tensor::of<int64_t>({11}, {0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0})};
         }});
});

}  // namespace
}  // namespace fleetx::testing
