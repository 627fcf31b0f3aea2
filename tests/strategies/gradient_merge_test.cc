#include <gtest/gtest.h>

#include <limits>

#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "tests/strategies/parallel_training.h"
#include "tests/support/expect_error.h"

namespace fleetx::strategies::gradient_merge_test {
namespace {

using testing::Training;
using testing::TrainOptions;

// What amp does to the next ones: batches whose gradients are not finite are not to be applied.
class CheckBatches final : public Strategy {
 public:
  std::string_view name() const override { return "check_batches"; }
  Traits traits() const override { return {.acts = {{Phase::kGradients}}}; }
  std::optional<ir::Attrs> requested(const Settings&, const Mesh&) const override {
    return std::nullopt;  // no setting asks for it
  }
  void on_gradients(Programs& programs, const StrategyContext&) const override {
    ir::Rewriter rw(programs.main);
    ir::Names gradients;
    for (const auto& p : programs.main.training().parameters) gradients.push_back(p.gradient);
    rw.append({.type = "check_finite",
               .inputs = {{"xs", gradients}},
               .outputs = {{"out", {"finite"}}},
               .role = ir::Role::kBackward});
    rw.edit_training().ready = "finite";
  }
};
FLEETX_STRATEGY(check_batches, CheckBatches);

constexpr const char* kText = R"(program
data x : f32[-1,4]
param w : f32[4,1]
state lr : f32[1]
state @step@ : i64[1]
var y : f32[-1,1]
var loss : f32[1]
var dloss : f32[1]
var dy : f32[-1,1]
var dw : f32[4,1]

forward:
y = fc(x, w, _)
loss = mean(y)

backward:
dloss = fill() {shape=[1], value=1.0}
dy = mean_grad(y, dloss)
_, dw, _ = fc_grad(x, w, _, _, dy)

training:
loss(loss, dloss)
parameter(w, dw, _)
)";

std::vector<std::string> backward_of(const std::vector<Request>& requests, int workers) {
  ir::Program main = ir::parse_text(kText), startup;
  ResolvedStrategies resolved(requests, {.mesh = Mesh({{"dp", workers}}, 0)});
  resolved.validate(main);
  resolved.apply(Phase::kGradients, {main, startup});
  std::vector<std::string> lines;
  for (const ir::Op& op : main.ops())
    if (op.role == ir::Role::kBackward) lines.push_back(ir::to_text(op));
  return lines;
}

TEST(GradientMerge, ProgramText) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(
      backward_of({{"gradient_merge", {{"k_steps", 4}}}}, 1),
      (Lines{R"(gradient_merge_last = fill() {dtype="i64", shape=[1], value=3.0})",
             "gradient_merge_due = equal(w@GRAD@GradientMerge@STEP, gradient_merge_last)",
             R"(gradient_merge_none = fill() {dtype="i64", shape=[1]})",
             "gradient_merge_first = equal(w@GRAD@GradientMerge@STEP, gradient_merge_none)",
             "dloss = fill() {shape=[1], value=1.0}", "dy = mean_grad(y, dloss)",
             "_, dw, _ = fc_grad(x, w, _, _, dy)",
             R"(w@GRAD@GradientMerge = accumulate(w@GRAD@GradientMerge, dw, gradient_merge_first))",
             R"(dw@MERGED = scale(w@GRAD@GradientMerge) {scale=0.25} if gradient_merge_due)",
             "w@GRAD@GradientMerge@STEP = increment(w@GRAD@GradientMerge@STEP)",
             "w@GRAD@GradientMerge@STEP = "
             R"(fill() {dtype="i64", shape=[1]} if gradient_merge_due)"}));
  // One batch merged is that batch.
  EXPECT_EQ(backward_of({{"gradient_merge"}}, 1).size(), 3u);
}

TEST(GradientMerge, WorkersCommunicateOncePerUpdate) {
  for (const auto& requests :
       {std::vector<Request>{{"data_parallel"}, {"gradient_merge", {{"k_steps", 4}}}},
        std::vector<Request>{
            {"data_parallel"}, {"gradient_merge", {{"k_steps", 4}}}, {"check_batches"}}}) {
    int collectives = 0;
    for (const std::string& line : backward_of(requests, 2)) {
      if (line.find("all_reduce") == std::string::npos) continue;
      ++collectives;
      EXPECT_NE(line.find(" if gradient_merge_"), std::string::npos) << line;
    }
    EXPECT_EQ(collectives, requests.size() == 2 ? 2 : 3);
  }
}

TEST(GradientMerge, SumsArePerWorker) {
  ir::Program main = ir::parse_text(kText), startup;
  ResolvedStrategies resolved({{"gradient_merge", {{"k_steps", 2}}}, {"data_parallel"}},
                              {.mesh = Mesh({{"dp", 2}}, 0)});
  resolved.apply(Phase::kGradients, {main, startup});
  for (const ir::Program* p : {&main, &startup}) {
    EXPECT_EQ(str(p->var("w@GRAD@GradientMerge").placement), "per_rank(dp, average)");
    EXPECT_EQ(str(p->var("w@GRAD@GradientMerge@STEP").placement), "replicated");
  }
}

TEST(GradientMerge, RefusesWhatMakesNoSense) {
  testing::expect_error(Error::Kind::kInvalidArgument, {"gradient_merge", "k_steps", "0"}, [] {
    backward_of({{"gradient_merge", {{"k_steps", 0}}}}, 1);
  });
}

// ---- numbers ----

// In the names of its state, of which workers have values of their own.
constexpr const char* kOwn = "radient";

// Without dropout, whose numbers depend on the place in the batch.
ir::Var perceptron(ir::Builder& b) {
  ir::Var h = b.data("x", f32, {-1, 12});
  h = nn::fc(h, {.size = 40, .act = "tanh"});
  const ir::Var logits = nn::fc(h, {.size = 5});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

// Rows 3 and 4 are in few batches; row 5 in none.
ir::Var sparse_table(ir::Builder& b) {
  const ir::Var ids = nn::cast(b.data("y", i64, {-1, 1}), i64);
  ir::Var h = nn::embedding(ids, {.rows = 6, .dim = 12, .sparse = true});
  h = nn::add(nn::reshape(h, {-1, 12}), b.data("x", f32, {-1, 12}));
  return nn::mean(nn::square(nn::fc(h, {.size = 3, .act = "tanh"})));
}

void expect_same_parameters(const Training& got, const Training& want, double tolerance,
                            const std::string& what) {
  for (const auto& [name, value] : want.state)
    if (name != "@step@" && name.find(kOwn) == std::string::npos)
      testing::expect_close(got.state.at(name), value, tolerance, what + name);
}

using Network = ir::Var (*)(ir::Builder&);

void expect_like_large_batches(Network network, optim::Optimizer& optimizer, bool avg,
                               double tolerance) {
  const int k = 4;
  const Training large =
      testing::train(network, optimizer, {.steps = 5, .batch = 24, .batches_per_step = k});
  for (const int workers : {1, 2}) {
    std::vector<Request> requests{{"gradient_merge", {{"k_steps", k}, {"avg", avg}}}};
    if (workers > 1) requests.push_back({"data_parallel"});
    const Training merged = testing::train(
        network, optimizer,
        {.workers = workers, .strategies = requests, .steps = 5 * k, .batch = 24, .own = kOwn});
    expect_same_parameters(merged, large, tolerance, str(workers, " workers: "));
    // The losses of k batches have the mean of the large one.
    for (size_t i = 0; i < large.losses.size(); ++i) {
      double mean = 0;
      for (size_t j = 0; j < k; ++j) mean += merged.losses[i * k + j] / k;
      EXPECT_NEAR(mean, large.losses[i], 1e-5);
    }
  }
}

TEST(GradientMerge, KBatchesAreOneLargeBatch) {
  optim::Sgd sgd({.lr = 0.2});
  optim::Momentum momentum({.lr = 0.05, .l2 = 1e-3, .clip = optim::clip_by_global_norm(0.1)});
  optim::Adam adam({.lr = 0.01});
  expect_like_large_batches(perceptron, sgd, true, 1e-6);
  expect_like_large_batches(perceptron, momentum, true, 1e-6);
  expect_like_large_batches(perceptron, adam, true, 1e-4);  // divides by small moments
}

TEST(GradientMerge, SparseGradientsToo) {
  optim::Sgd sgd({.lr = 0.2});
  optim::Adam adam({.lr = 0.01});  // lazy: rows that no batch touches keep their moments
  expect_like_large_batches(sparse_table, sgd, true, 1e-6);
  expect_like_large_batches(sparse_table, adam, true, 1e-4);
}

TEST(GradientMerge, TheSumIsKTimesTheMean) {
  optim::Sgd sgd({.lr = 0.05}), four({.lr = 0.2});
  const auto train = [&](optim::Optimizer& o, bool avg) {
    return testing::train(perceptron, o,
                          {.strategies = {{"gradient_merge", {{"k_steps", 4}, {"avg", avg}}}}});
  };
  Training sum = train(sgd, false), mean = train(four, true);
  for (Training* t : {&sum, &mean}) t->state.erase("learning_rate_0");
  testing::expect_equal(sum, mean, 1e-6, "sum");
}

TEST(GradientMerge, ABadBatchIsLeftOut) {
  // Of the batches 0 to 3 the second is bad on worker 1 only; 4 and 5 are bad everywhere.
  const auto poison = [](int step, int rank, runtime::Feeds& feeds) {
    if ((step == 1 && rank == 1) || step == 4 || step == 5)
      feeds[0].second.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  };
  optim::Momentum momentum({.lr = 0.1});
  const auto train = [&](int steps, int k, bool poisoned) {
    TrainOptions o{
        .workers = 2,
        .strategies = {{"data_parallel"}, {"check_batches"}, {"gradient_merge", {{"k_steps", k}}}},
        .steps = steps,
        .own = kOwn};
    if (poisoned) o.change = poison;
    return testing::train(perceptron, momentum, o);
  };
  // Worker 0 has two good batches and worker 1 one: by hand, from single steps of one worker.
  const Training first = train(2, 2, true);
  std::vector<Tensor> after;
  for (const auto& [step, rank] : {std::pair{0, 0}, {0, 1}, {1, 0}}) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var loss = perceptron(b);
    momentum.minimize(loss);
    startup.set_seed(1);
    runtime::Scope scope;
    runtime::Executor exe(runtime::ExecutorOptions{});
    exe.run(startup, scope);
    exe.run(main, scope, testing::batch_of(step, {.workers = 2}, rank), {loss.name()});
    after.push_back(scope.get("fc_0.w_0"));
  }
  Tensor mean = testing::map(after[0], [](float x) { return x / 3; });
  for (const size_t i : {1u, 2u})
    mean = testing::zip(mean, after[i], [](float sum, float x) { return sum + x / 3; });
  testing::expect_close(first.state.at("fc_0.w_0"), mean, 1e-6, "three good batches of four");

  // Nothing is good: no update, not even of the velocity.
  const Training before = train(4, 2, true), same = train(6, 2, true);
  expect_same_parameters(same, before, 0, "no good batch: ");
  const Training on = train(8, 2, true);
  EXPECT_NE(on.state.at("fc_0.w_0").data<float>()[0], same.state.at("fc_0.w_0").data<float>()[0]);
}

// What it added up for the update before counts no more.
TEST(GradientMerge, AWorkerWithoutAGoodBatchAddsNothing) {
  optim::Momentum momentum({.lr = 0.1});
  TrainOptions o{
      .workers = 2,
      .strategies = {{"data_parallel"}, {"check_batches"}, {"gradient_merge", {{"k_steps", 2}}}},
      .steps = 2,
      .own = kOwn,
      .change = [](int step, int rank, runtime::Feeds& feeds) {
        if (step >= 2 && rank == 1)
          feeds[0].second.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
      }};
  const Training before = testing::train(perceptron, momentum, o);
  o.steps = 4;
  const Training merged = testing::train(perceptron, momentum, o);

  // By hand: one worker goes on from there with the two batches of worker 0 at once.
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var loss = perceptron(b);
  momentum.minimize(loss);
  runtime::Scope scope;
  runtime::Executor exe(runtime::ExecutorOptions{});
  exe.run(startup, scope);
  for (const std::string& name : scope.names()) scope.set(name, before.state.at(name));
  runtime::Feeds feeds = testing::batch_of(2, o, 0);
  const runtime::Feeds more = testing::batch_of(3, o, 0);
  for (size_t i = 0; i < feeds.size(); ++i)
    feeds[i].second = testing::joined(feeds[i].second, more[i].second);
  exe.run(main, scope, feeds, {loss.name()});
  for (const std::string& name : scope.names())
    if (name != "@step@") testing::expect_close(merged.state.at(name), scope.get(name), 1e-6, name);
}

TEST(GradientMerge, GoesOnInTheMiddle) {
  optim::Adam adam({.lr = 0.01});
  for (Network network : {Network(perceptron), Network(sparse_table)}) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var loss = network(b);
    testing::minimize_for_worker(loss, adam, {{"gradient_merge", {{"k_steps", 3}}}}, 0, 1);
    const auto run = [&](runtime::Scope& scope, int begin, int end) {
      runtime::Executor exe(runtime::ExecutorOptions{});
      for (int step = begin; step < end; ++step)
        exe.run(main, scope, testing::batch_of(step, {}, 0), {loss.name()});
    };
    runtime::Scope whole, first, second;
    runtime::Executor(runtime::ExecutorOptions{}).run(startup, whole);
    runtime::Executor(runtime::ExecutorOptions{}).run(startup, first);
    run(whole, 0, 9);
    run(first, 0, 4);  // one batch into the second window
    for (const std::string& name : first.names()) second.set(name, first.get(name));
    run(second, 4, 9);
    for (const std::string& name : whole.names())
      testing::expect_close(second.get(name), whole.get(name), 0, name);
  }
}

}  // namespace
}  // namespace fleetx::strategies::gradient_merge_test
