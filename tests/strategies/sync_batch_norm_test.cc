#include <gtest/gtest.h>

#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "tests/strategies/parallel_training.h"

namespace fleetx::strategies::sync_batch_norm_test {
namespace {

using testing::Training;
using testing::TrainOptions;

// `smooth`: tanh instead of relu, whose gradient jumps: where two runs round a number near 0 to
// different sides, they learn different things from there on. No global pool before the last norm,
// as samples would differ little there, and the division by their small deviation would make 1e-4
// of a rounding for some first values. So what differs after twenty steps is rounding still,
// whatever the compiler makes of the order of sums.
ir::Var network(ir::Builder& b, bool smooth) {
  ir::Var h = b.data("x", f32, {-1, 3, 8, 8});
  h = nn::conv2d(h, {.filters = 16, .kernel = 3, .padding = 1, .bias = false});
  h = smooth ? nn::tanh(nn::batch_norm(h)) : nn::batch_norm(h, {.act = "relu"});
  h = nn::batch_norm(nn::conv2d(h, {.filters = 5, .kernel = 3, .bias = false}));
  h = nn::batch_norm(nn::fc(h, {.size = 6}));
  const ir::Var logits = nn::fc(h, {.size = 5});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

ir::Var convolutions(ir::Builder& b) { return network(b, false); }
ir::Var smooth_convolutions(ir::Builder& b) { return network(b, true); }

TrainOptions options(int workers, const std::vector<Request>& requests) {
  return {.workers = workers, .strategies = requests, .sample = {3, 8, 8}};
}

TEST(SyncBatchNorm, ProgramText) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  optim::Sgd sgd({.lr = 0.1});
  const ir::Var loss = convolutions(b);
  EXPECT_THROW(testing::minimize_for_worker(loss, sgd, {{"sync_batch_norm"}}, 0, 2), Error);
  testing::minimize_for_worker(loss, sgd, {{"data_parallel"}, {"sync_batch_norm"}}, 0, 2);
  int found = 0;
  for (const ir::Op& op : main.ops())
    if (op.type().starts_with("batch_norm")) {
      ++found;
      EXPECT_NE(ir::to_text(op).find(R"(group="dp")"), std::string::npos) << ir::to_text(op);
    }
  EXPECT_EQ(found, 6);
  // The statistics are those of all workers: one for all.
  for (const ir::VarInfo* v : main.vars()) EXPECT_FALSE(v->placement.is_per_rank()) << v->name;
}

TEST(SyncBatchNorm, NWorkersAreOneWorker) {
  optim::Momentum momentum({.lr = 0.02});
  const auto train = [&](int workers, const std::vector<Request>& requests, bool smooth) {
    TrainOptions o = options(workers, requests);
    if (!smooth) o.steps = 2;
    return testing::train(smooth ? smooth_convolutions : convolutions, momentum, o);
  };
  for (const bool smooth : {true, false}) {
    const Training one = train(1, {}, smooth);
    if (smooth) {
      ASSERT_LT(one.losses.back(), one.losses.front());
    }
    for (const int workers : {2, 4})
      testing::expect_equal(train(workers, {{"data_parallel"}, {"sync_batch_norm"}}, smooth), one,
                            smooth ? 1e-5 : 1e-6, str(workers, " workers, smooth: ", smooth));
  }
}

// Without it each worker normalizes by its own share of the batch: the gradients are the average of
// what single workers with these shares compute.
TEST(SyncBatchNorm, WithoutItEachWorkerHasStatisticsOfItsOwn) {
  const int workers = 2;
  optim::Sgd sgd({.lr = 0.02});
  TrainOptions o = options(workers, {{"data_parallel"}});
  o.steps = 1;
  o.own = "batch_norm";
  const Training many = testing::train(convolutions, sgd, o);

  // By hand: one step of a single worker on each half, from the same values; the mean of the
  // results is the step with the mean gradient.
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var loss = convolutions(b);
  sgd.minimize(loss);
  startup.set_seed(1);
  std::vector<std::map<std::string, Tensor>> after;
  for (int rank = 0; rank < workers; ++rank) {
    runtime::Scope scope;
    runtime::Executor exe(runtime::ExecutorOptions{});
    exe.run(startup, scope);
    const auto feeds = testing::batch_of(0, o, rank);
    exe.run(main, scope, feeds, {loss.name()});
    auto& state = after.emplace_back();
    for (const ir::VarInfo* p : main.parameters()) state.emplace(p->name, scope.get(p->name));
  }
  for (const auto& [name, first] : after[0]) {
    const Tensor mean =
        testing::zip(first, after[1].at(name), [](float a, float c) { return (a + c) / 2; });
    testing::expect_close(many.state.at(name), mean, 1e-6, name);
  }
}

}  // namespace
}  // namespace fleetx::strategies::sync_batch_norm_test
