#include "fleetx/fleet/join.h"

#include <gtest/gtest.h>

#include "fleetx/nn/nn.h"
#include "tests/strategies/parallel_training.h"

namespace fleetx::fleet {
namespace {

ir::Var linear(ir::Builder& b) {
  const ir::Var y = nn::fc(b.data("x", f32, {-1, 3}), {.size = 1, .bias = false});
  return nn::mean(nn::square(y));
}

Tensor batch(int rank, int step) {
  return testing::random({4, 3}, static_cast<uint64_t>(10 * rank + step));
}

// What a single worker gets from the batches of those that have one in this step.
Tensor expected(const std::vector<int>& steps_of) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  optim::Sgd({.lr = 0.1}).minimize(linear(b));
  runtime::Scope scope;
  runtime::Executor exe(runtime::ExecutorOptions{});
  exe.run(startup, scope);
  for (int step = 0;; ++step) {
    std::vector<float> rows;
    for (size_t rank = 0; rank < steps_of.size(); ++rank) {
      if (step >= steps_of[rank]) continue;
      const Tensor x = batch(static_cast<int>(rank), step);
      rows.insert(rows.end(), x.data<float>().begin(), x.data<float>().end());
    }
    if (rows.empty()) break;
    const Shape shape{static_cast<int64_t>(rows.size()) / 3, 3};
    exe.run(main, scope, {{"x", Tensor::of(shape, rows)}});
  }
  return scope.get("fc_0.w_0");
}

TEST(Join, WorkersWithMoreDataGoOnWithTheOthersAtRest) {
  const std::vector<int> steps_of{5, 2, 3};
  const Tensor want = expected(steps_of);
  testing::run_workers(3, [&](int rank, const testing::SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    optim::Sgd sgd({.lr = 0.1});
    testing::minimize_for_worker(linear(b), sgd, {{"data_parallel"}}, rank, 3);
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups}});
    exe.run(startup, scope);
    int steps = 0;
    {
      Join join(scope, groups->at("dp"));
      Tensor last;
      for (;; ++steps) {
        const bool have = steps < steps_of[static_cast<size_t>(rank)];
        if (have) last = batch(rank, steps);
        if (!join.step(have)) break;
        exe.run(main, scope, {{"x", last}});
      }
    }
    EXPECT_EQ(steps, 5);
    testing::expect_close(scope.get("fc_0.w_0"), want, 1e-6, str("worker ", rank));
    EXPECT_EQ(scope.get("@worker_weight@").item<float>(), 1.0f);
  });
}

TEST(Join, SaysWhatIsMissing) {
  testing::run_workers(2, [&](int, const testing::SharedGroups& groups) {
    runtime::Scope scope;
    EXPECT_THROW(Join(scope, groups->at("dp")), Error);  // no such program
    Tensor one = testing::filled({1}, 1);
    scope.set("@worker_weight@", one);
    Join join(scope, groups->at("dp"));
    EXPECT_THROW(join.step(false), Error);  // no data at all
  });
}

}  // namespace
}  // namespace fleetx::fleet
