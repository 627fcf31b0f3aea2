#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "tests/strategies/worker.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::strategies::adaptive_localsgd_test {
namespace {

using testing::Job;
using testing::MakeOptimizer;
using testing::Trace;

ir::Var perceptron(ir::Builder& b) {
  ir::Var h = b.data("x", f32, {-1, 12});
  h = nn::fc(h, {.size = 40, .act = "tanh", .name = "hidden"});
  const ir::Var logits = nn::fc(h, {.size = 5, .name = "last"});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

MakeOptimizer momentum(double lr) {
  return [lr] { return std::make_unique<optim::Momentum>(optim::MomentumOptions{.lr = lr}); };
}

std::vector<Request> adaptive(int64_t k, int64_t begin = 1) {
  return {{"data_parallel", {{"average", false}}},
          {"adaptive_localsgd", {{"init_k_steps", k}, {"begin_step", begin}}}};
}

TEST(AdaptiveLocalSgd, ProgramText) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 4});
  const ir::Var loss = nn::mean(nn::fc(x, {.size = 1, .bias = false, .name = "fc"}));
  optim::Sgd sgd({.lr = 0.1});
  testing::minimize_for_worker(loss, sgd, adaptive(4), 0, 2);
  std::string text;  // all but the update and the count of steps, which the optimizer has made
  for (const ir::Op& op : main.ops())
    if (op.role == ir::Role::kUpdate && !op.loc.known()) text += ir::to_text(op) + "\n";
  EXPECT_EQ(text, R"(adaptive_localsgd_step = increment(@step@)
adaptive_localsgd_begin = fill() {dtype="i64", shape=[1], value=1.0}
adaptive_localsgd_early = less_equal(adaptive_localsgd_step, adaptive_localsgd_begin)
adaptive_localsgd_since = elementwise_sub(adaptive_localsgd_step, adaptive_localsgd_last)
adaptive_localsgd_full = greater_equal(adaptive_localsgd_since, adaptive_localsgd_k)
adaptive_localsgd_sync = logical_or(adaptive_localsgd_early, adaptive_localsgd_full)
adaptive_localsgd_loss = cast(mean_0.tmp_0) {dtype="f32"} if adaptive_localsgd_sync
[adaptive_localsgd_loss] = all_reduce([adaptive_localsgd_loss]) {group="dp", op="average"} if adaptive_localsgd_sync
adaptive_localsgd_k, adaptive_localsgd_loss0, adaptive_localsgd_lr0 = adaptive_k_steps(adaptive_localsgd_k, adaptive_localsgd_loss0, adaptive_localsgd_lr0, adaptive_localsgd_loss, learning_rate_0, adaptive_localsgd_step) {begin_step=1, init_k_steps=4} if adaptive_localsgd_sync
adaptive_localsgd_last = assign(adaptive_localsgd_step) if adaptive_localsgd_sync
fc.w_0@DIFFERENCE = elementwise_sub(fc.w_0@SNAPSHOT, fc.w_0) if adaptive_localsgd_sync
[fc.w_0@DIFFERENCE], all_reduce_ticket = all_reduce_start([fc.w_0@DIFFERENCE], @step@) {group="dp", op="average"} if adaptive_localsgd_sync
[fc.w_0@DIFFERENCE] = all_reduce_wait([fc.w_0@DIFFERENCE], all_reduce_ticket) {group="dp", op="average"} if adaptive_localsgd_sync
fc.w_0 = elementwise_sub(fc.w_0@SNAPSHOT, fc.w_0@DIFFERENCE) if adaptive_localsgd_sync
fc.w_0@SNAPSHOT = assign(fc.w_0) if adaptive_localsgd_sync
)");
  EXPECT_TRUE(main.var("adaptive_localsgd_k").placement.is_replicated());
}

// The rule, from the losses that the workers saw and the learning rates: which steps end with an
// average is seen in parameters that are the same on both.
TEST(AdaptiveLocalSgd, FollowsLossAndRate) {
  const int steps = 30, k0 = 6, begin = 3;
  const auto rate = [](int step) { return step < 12 ? 0.05 : 0.01; };
  std::vector<std::vector<Tensor>> weights(2);
  std::vector<std::vector<int64_t>> seen(2);
  std::vector<std::vector<float>> losses(2);
  testing::run_workers(2, [&](int rank, const testing::SharedGroups& groups) {
    const testing::Network network = [](ir::Builder& b) { return perceptron(b); };
    testing::Worker worker(network, momentum(0.05), adaptive(k0, begin), rank, 2, groups);
    const auto r = static_cast<size_t>(rank);
    for (int step = 0; step < steps; ++step) {
      Tensor lr(f32, {1});
      lr.data<float>()[0] = static_cast<float>(rate(step));
      worker.set("learning_rate_0", lr);
      losses[r].push_back(worker.step(testing::batch_of(step, {.workers = 2}, rank)));
      weights[r].push_back(worker.get("hidden.w_0"));
      seen[r].push_back(worker.get("adaptive_localsgd_k").item<int64_t>());
    }
  });
  EXPECT_EQ(seen[0], seen[1]);
  int64_t k = k0, last = 0;
  double loss0 = 0;
  std::set<int64_t> values;
  for (int64_t step = 1; step <= steps; ++step) {
    const auto i = static_cast<size_t>(step - 1);
    const double loss = (static_cast<double>(losses[0][i]) + losses[1][i]) / 2;
    if (step == 1) loss0 = loss;
    const bool sync = step <= begin || step - last >= k;
    const auto a = weights[0][i].data<float>(), b = weights[1][i].data<float>();
    EXPECT_EQ(std::equal(a.begin(), a.end(), b.begin()), sync) << "step " << step;
    if (sync && step > begin)
      k = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(std::sqrt(
                                  rate(0) * loss / (rate(static_cast<int>(i)) * loss0) * k0))),
                              1, 16);
    if (sync) last = step;
    EXPECT_EQ(seen[0][i], k) << "step " << step;
    values.insert(k);
  }
  EXPECT_GT(values.size(), 2u);  // it did change
}

TEST(AdaptiveLocalSgd, ResumesInTheMiddleOfAPeriod) {
  const testing::TempDir dir;
  testing::expect_resumes({.network = perceptron,
                           .optimizer = momentum(0.05),
                           .strategies = adaptive(8),
                           .workers = 3,
                           .last = 16},
                          7, dir / "run");
}

TEST(AdaptiveLocalSgd, AnAverageInEveryStepIsDataParallel) {
  Job o{.network = perceptron, .optimizer = momentum(0.05), .strategies = adaptive(1, 100)};
  const Trace got = testing::run(o);
  o.strategies = {{"data_parallel"}};
  const Trace want = testing::run(o);
  for (const std::string name : {"hidden.w_0", "last.w_0"})
    testing::expect_close(got.state[0].at(name), want.state[0].at(name), 1e-6, name);
}

TEST(AdaptiveLocalSgd, RefusesWhatMakesNoSense) {
  using testing::contains;
  using testing::error_of;
  const auto apply = [](const std::vector<Request>& requests) {
    return error_of([&] {
      const ir::Program main;
      ResolvedStrategies resolved(requests, {.mesh = Mesh({{"dp", 2}}, 0)});
      resolved.validate(main);
    });
  };
  EXPECT_TRUE(contains(apply(adaptive(0)), "'init_k_steps' is 0"));
  EXPECT_TRUE(contains(apply(adaptive(2, -1)), "'begin_step' is -1"));
  auto both = adaptive(2);
  both.push_back({"dgc"});
  EXPECT_TRUE(contains(apply(both), "cannot be used together"));
  fleet::DistributedStrategy s;
  EXPECT_TRUE(contains(error_of([&] {
                         s.set_configs("adaptive_localsgd_configs", {{"init_k_steps", 0}});
                       }),
                       "adaptive_localsgd_configs['init_k_steps']"));
}

}  // namespace
}  // namespace fleetx::strategies::adaptive_localsgd_test
