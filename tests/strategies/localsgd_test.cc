#include <gtest/gtest.h>

#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "tests/strategies/worker.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::strategies::localsgd_test {
namespace {

using testing::Job;
using testing::MakeOptimizer;
using testing::Trace;
using testing::Worker;

ir::Var perceptron(ir::Builder& b) {
  ir::Var h = b.data("x", f32, {-1, 12});
  h = nn::fc(h, {.size = 40, .act = "tanh", .name = "hidden"});
  const ir::Var logits = nn::fc(h, {.size = 5, .name = "last"});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

template <class O>
MakeOptimizer make(typename O::Options options) {
  return [options] { return std::make_unique<O>(options); };
}

std::vector<Request> local(int64_t k, int64_t begin = 1) {
  return {{"data_parallel", {{"average", false}}},
          {"localsgd", {{"k_steps", k}, {"begin_step", begin}}}};
}

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

constexpr const char* kStartup = R"(program
param w : f32[4,1]

forward:
w = fill() {shape=[4,1], value=0.5}
)";

TEST(LocalSgd, ProgramText) {
  ir::Program main = ir::parse_text(kText), startup = ir::parse_text(kStartup);
  ResolvedStrategies resolved(local(4), {.mesh = Mesh({{"dp", 2}}, 1)});
  strategies::minimize(
      {main, startup}, resolved, [] {},
      [&] {
        ir::Rewriter rw(main);
        rw.append({.type = "sgd",
                   .inputs = {{"param", {"w"}}, {"grad", {"dw"}}, {"lr", {"lr"}}},
                   .outputs = {{"param_out", {"w"}}},
                   .role = ir::Role::kUpdate});
        rw.append({.type = "increment",
                   .inputs = {{"x", {"@step@"}}},
                   .outputs = {{"out", {"@step@"}}},
                   .attrs = {{"value", 1.0}},
                   .role = ir::Role::kUpdate});
        rw.edit_training().step = "@step@";
        rw.edit_training().parameters[0].learning_rate = "lr";
      });
  std::string text;
  for (const ir::Op& op : main.ops())
    if (op.role != ir::Role::kForward) text += ir::to_text(op) + "\n";
  // Gradients stay where they are made.
  EXPECT_EQ(text, R"(dloss = assign("@worker_weight@")
dy = mean_grad(y, dloss)
_, dw, _ = fc_grad(x, w, _, _, dy)
[w] = sgd([w], [dw], lr, _)
localsgd_step = increment(@step@)
localsgd_begin = fill() {dtype="i64", shape=[1], value=1.0}
localsgd_k = fill() {dtype="i64", shape=[1], value=4.0}
localsgd_none = fill() {dtype="i64", shape=[1]}
localsgd_early = less_equal(localsgd_step, localsgd_begin)
localsgd_since = elementwise_sub(localsgd_step, localsgd_begin)
localsgd_rest = elementwise_mod(localsgd_since, localsgd_k)
localsgd_full = equal(localsgd_rest, localsgd_none)
localsgd_sync = logical_or(localsgd_early, localsgd_full)
w@DIFFERENCE = elementwise_sub(w@SNAPSHOT, w) if localsgd_sync
[w@DIFFERENCE], all_reduce_ticket = all_reduce_start([w@DIFFERENCE], @step@) {group="dp", op="average"} if localsgd_sync
[w@DIFFERENCE] = all_reduce_wait([w@DIFFERENCE], all_reduce_ticket) {group="dp", op="average"} if localsgd_sync
w = elementwise_sub(w@SNAPSHOT, w@DIFFERENCE) if localsgd_sync
w@SNAPSHOT = assign(w) if localsgd_sync
@step@ = increment(@step@)
)");
  EXPECT_EQ(str(main.var("w").placement), "per_rank(dp, average)");
  EXPECT_EQ(main.var("w").placement, startup.var("w").placement);
  EXPECT_TRUE(main.var("w@SNAPSHOT").placement.is_replicated());
  std::string begin;
  for (const ir::Op& op : startup.ops()) begin += ir::to_text(op) + "\n";
  EXPECT_EQ(begin, R"(w = fill() {shape=[4,1], value=0.5}
"@worker_weight@" = fill() {shape=[1], value=1.0}
[w] = broadcast([w]) {group="dp"}
w@SNAPSHOT = assign(w)
)");
}

// Workers that train alone; the test averages their parameters.
Trace reference(const MakeOptimizer& optimizer, int workers, int steps,
                const std::function<bool(int step)>& sync) {
  std::vector<std::unique_ptr<Worker>> all;
  for (int rank = 0; rank < workers; ++rank)
    all.push_back(
        std::make_unique<Worker>(perceptron, optimizer, std::vector<Request>{}, rank, 1, nullptr));
  for (size_t r = 1; r < all.size(); ++r)
    for (const std::string& p : all[0]->parameters()) all[r]->set(p, all[0]->get(p));
  Trace trace;
  testing::TrainOptions data{.workers = workers};
  for (int step = 0; step < steps; ++step) {
    std::vector<float>& losses = trace.losses.emplace_back();
    for (int rank = 0; rank < workers; ++rank)
      losses.push_back(all[static_cast<size_t>(rank)]->step(testing::batch_of(step, data, rank)));
    if (!sync(step + 1)) continue;
    for (const std::string& p : all[0]->parameters()) {
      std::vector<Tensor> values;
      for (const auto& w : all) values.push_back(w->get(p));
      const Tensor mean = testing::mean_of(values);
      for (const auto& w : all) w->set(p, mean);
    }
  }
  for (const auto& w : all) trace.state.push_back(w->state());
  return trace;
}

void expect_near(const Trace& got, const Trace& want, double tolerance, const std::string& what) {
  for (size_t s = 0; s < want.losses.size(); ++s)
    for (size_t r = 0; r < want.losses[s].size(); ++r)
      EXPECT_NEAR(got.losses[s][r], want.losses[s][r],
                  tolerance * std::abs(static_cast<double>(want.losses[s][r])))
          << what << ", step " << s << ", worker " << r;
  for (size_t r = 0; r < want.state.size(); ++r)
    for (const auto& [name, value] : want.state[r])
      testing::expect_close(got.state[r].at(name), value, tolerance,
                            str(what, ", ", name, " of worker ", r));
}

TEST(LocalSgd, IsTheAverageOfWorkersThatTrainAlone) {
  const std::map<std::string, MakeOptimizer> optimizers{
      {"sgd", make<optim::Sgd>({.lr = 0.2})},
      {"momentum", make<optim::Momentum>({.lr = 0.05, .nesterov = true, .l2 = 1e-3})},
      {"adam", make<optim::Adam>({.lr = 0.01})},
      {"clipped", make<optim::Momentum>({.lr = 0.05, .clip = optim::clip_by_global_norm(0.1)})}};
  for (const auto& [name, optimizer] : optimizers)
    for (const int workers : {2, 3}) {
      const Trace got = testing::run({.network = perceptron,
                                      .optimizer = optimizer,
                                      .strategies = local(3, 2),
                                      .workers = workers,
                                      .last = 13});
      const Trace want = reference(optimizer, workers, 13,
                                   [](int step) { return step <= 2 || (step - 2) % 3 == 0; });
      expect_near(got, want, 2e-6, str(name, ", ", workers, " workers"));
    }
}

// The updates are linear in the gradients: the average of the updates is the update by the average.
TEST(LocalSgd, EveryStepIsDataParallel) {
  const std::map<std::string, MakeOptimizer> optimizers{
      {"sgd", make<optim::Sgd>({.lr = 0.2})},
      {"momentum", make<optim::Momentum>({.lr = 0.05})},
      {"nesterov", make<optim::Momentum>({.lr = 0.05, .nesterov = true, .l2 = 1e-3})}};
  for (const auto& [name, optimizer] : optimizers) {
    Job o{.network = perceptron,
          .optimizer = optimizer,
          .strategies = local(1),
          .workers = 4,
          .last = 20};
    const Trace got = testing::run(o);
    o.strategies = {{"data_parallel"}};
    const Trace want = testing::run(o);
    for (size_t s = 0; s < got.losses.size(); ++s)
      for (size_t r = 0; r < 4; ++r)
        EXPECT_NEAR(got.losses[s][r], want.losses[s][r],
                    1e-6 * std::abs(static_cast<double>(want.losses[s][r])))
            << name;
    for (const auto& [var, value] : want.state[0]) {
      if (var == "@worker_weight@") continue;
      // Velocities stay those of their workers; their mean is that of data parallel.
      std::vector<Tensor> all;
      for (const auto& state : got.state) all.push_back(state.at(var));
      if (value.dtype() == f32)
        testing::expect_close(testing::mean_of(all), value, 1e-6, name + ", " + var);
    }
  }
}

TEST(LocalSgd, ResumesInTheMiddleOfAPeriod) {
  const testing::TempDir dir;
  testing::expect_resumes({.network = perceptron,
                           .optimizer = make<optim::Momentum>({.lr = 0.05}),
                           .strategies = local(4),
                           .workers = 3},
                          7, dir / "run");
}

// One worker has no snapshot: the parameters it has saved are the first one.
TEST(LocalSgd, SeveralWorkersResumeOne) {
  const testing::TempDir dir;
  Job o{.network = perceptron,
        .optimizer = make<optim::Momentum>({.lr = 0.05}),
        .strategies = {},  // neither acts in a job of one
        .workers = 1,
        .last = 6,
        .save = dir / "run"};
  const Trace before = testing::run(o);
  EXPECT_FALSE(before.state[0].contains("hidden.w_0@SNAPSHOT"));
  Job next = o;
  next.strategies = local(4);
  next.workers = 2;
  next.first = next.last;  // only loads
  next.load = o.save;
  next.save = "";
  const Trace after = testing::run(next);
  for (const auto& state : after.state)
    for (const char* name : {"hidden.w_0", "hidden.w_0@SNAPSHOT"})
      testing::expect_close(state.at(name), before.state[0].at("hidden.w_0"), 0, name);
}

// The values that all new workers get are the mean of the old ones'.
TEST(LocalSgd, AnotherNumberOfWorkersGoesOnFromTheMean) {
  const testing::TempDir dir;
  Job o{.network = perceptron,
        .optimizer = make<optim::Momentum>({.lr = 0.05}),
        .strategies = local(4),
        .workers = 4,
        .last = 7,
        .save = dir / "run"};
  const Trace before = testing::run(o);
  EXPECT_NE(before.state[0].at("hidden.w_0").data<float>()[0],
            before.state[1].at("hidden.w_0").data<float>()[0]);
  Job next = o;
  next.workers = 2;
  next.first = next.last;  // only loads
  next.load = o.save;
  next.save = "";
  const Trace after = testing::run(next);
  for (const auto& [name, value] : after.state[0]) {
    if (value.dtype() != f32 || name == "@worker_weight@") continue;
    std::vector<Tensor> all;
    for (const auto& state : before.state) all.push_back(state.at(name));
    testing::expect_close(value, testing::mean_of(all), 1e-7, name);
    testing::expect_close(after.state[1].at(name), value, 0, name);
  }
  next.last += 5;
  const Trace more = testing::run(next);
  for (const auto& losses : more.losses)
    for (const float loss : losses) EXPECT_TRUE(std::isfinite(loss));
}

TEST(LocalSgd, TwiceIsTheSame) {
  const Job o{.network = perceptron,
              .optimizer = make<optim::Momentum>({.lr = 0.05}),
              .strategies = local(3),
              .workers = 3};
  testing::expect_same(testing::run(o), testing::run(o));
}

TEST(LocalSgd, WithRecompute) {
  auto strategies = local(3);
  strategies.push_back({"recompute", {{"checkpoints", ir::Strings{"hidden.tmp_0"}}}});
  Job o{.network =
            [](ir::Builder& b) {
              ir::Var h = nn::fc(b.data("x", f32, {-1, 12}), {.size = 40, .name = "hidden"});
              const ir::Var kept = h;
              h = nn::fc(nn::tanh(nn::tanh(kept)), {.size = 5, .name = "last"});
              return nn::mean(nn::softmax_cross_entropy(h, b.data("y", i64, {-1, 1})));
            },
        .optimizer = make<optim::Momentum>({.lr = 0.05}),
        .strategies = local(3)};
  const Trace without = testing::run(o);
  {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    (void)o.network(b);
    for (const ir::Op& op : main.ops())
      if (op.type() == "fc") {
        strategies.back().options.at("checkpoints") = ir::Strings{op.out("out").front()};
        break;
      }
  }
  o.strategies = strategies;
  testing::expect_same(testing::run(o), without);
}

// A worker skips its own bad steps; the loss scales of all are one again after each average.
TEST(LocalSgd, WithAmp) {
  auto strategies = local(3);
  strategies.push_back(
      {"amp",
       {{"init_loss_scaling", 1024.0}, {"decr_every_n_nan_or_inf", 1}, {"decr_ratio", 0.5}}});
  const testing::TrainOptions data{.workers = 2};
  testing::run_workers(2, [&](int rank, const testing::SharedGroups& groups) {
    Worker worker(perceptron, make<optim::Momentum>({.lr = 0.05}), strategies, rank, 2, groups);
    worker.step(testing::batch_of(0, data, rank));
    worker.step(testing::batch_of(1, data, rank));
    const auto before = worker.state();
    const auto batch = testing::batch_of(2, data, rank);
    worker.step(rank == 1 ? testing::bad_batch(batch) : batch);
    const auto after = worker.state();
    for (const std::string name : {"hidden.w_0", "hidden.w_0_velocity_0"}) {
      const auto a = before.at(name).data<float>(), b = after.at(name).data<float>();
      EXPECT_EQ(std::equal(a.begin(), a.end(), b.begin()), rank == 1) << name;
    }
    const auto scale = [&] { return worker.get("loss_scaling_0").item<float>(); };
    EXPECT_EQ(scale(), rank == 1 ? 512.0f : 1024.0f);
    EXPECT_EQ(worker.get("num_good_steps_0").item<int32_t>(), rank == 1 ? 0 : 3);
    worker.step(testing::batch_of(3, data, rank));  // ends with an average
    EXPECT_EQ(scale(), 512.0f);
    EXPECT_EQ(worker.get("num_good_steps_0").item<int32_t>(), 1);
    EXPECT_EQ(str(worker.main().var("loss_scaling_0").placement), "per_rank(dp, average)");
  });
}

TEST(LocalSgd, WithAmpLearnsAndResumes) {
  const testing::TempDir dir;
  Job o{.network = perceptron,
        .optimizer = make<optim::Momentum>({.lr = 0.05}),
        .strategies = local(4),
        .workers = 2,
        .last = 30};
  o.strategies.push_back({"amp", {{"incr_every_n_steps", 5}}});
  testing::expect_resumes(o, 7, dir / "run");
  const Trace half = testing::run(o);
  o.strategies.pop_back();
  const Trace full = testing::run(o);
  EXPECT_NEAR(half.losses.back()[0], full.losses.back()[0], 0.05);
}

// A table that the user calls distributed is the same on all workers in every step.
TEST(LocalSgd, DistributedTablesAreAveragedInEveryStep) {
  const testing::Network network = [](ir::Builder& b) {
    const ir::Var ids = nn::cast(b.data("y", i64, {-1, 1}), i64);
    ir::Var h = nn::embedding(ids, {.rows = 5, .dim = 12, .sparse = true, .name = "table"});
    h = nn::add(nn::reshape(h, {-1, 12}), b.data("x", f32, {-1, 12}));
    return nn::mean(nn::square(nn::fc(h, {.size = 3, .act = "tanh", .name = "last"})));
  };
  const testing::Network marked = [&](ir::Builder& b) {
    const ir::Var loss = network(b);
    ir::Rewriter(b.main()).edit_var("table.w_0").is_distributed = true;
    return loss;
  };
  Job o{.network = marked,
        .optimizer = make<optim::Sgd>({.lr = 0.2}),
        .strategies = local(4),
        .last = 7};  // the last average was in step 5
  const Trace trace = testing::run(o);
  testing::expect_close(trace.state[0].at("table.w_0"), trace.state[1].at("table.w_0"), 0, "table");
  EXPECT_NE(trace.state[0].at("last.w_0").data<float>()[0],
            trace.state[1].at("last.w_0").data<float>()[0]);
  EXPECT_FALSE(trace.state[0].contains("table.w_0@SNAPSHOT"));
  // A sparse table that is not: workers change their own, and average the whole of it.
  o.network = network;
  o.last = 9;
  const Trace own = testing::run(o);
  testing::expect_close(own.state[0].at("table.w_0"), own.state[1].at("table.w_0"), 0, "table");
}

TEST(LocalSgd, RefusesWhatMakesNoSense) {
  using testing::contains;
  using testing::error_of;
  const StrategyContext two{.mesh = Mesh({{"dp", 2}}, 0)};
  const auto apply = [&](const std::vector<Request>& requests) {
    return error_of([&] {
      ir::Program main = ir::parse_text(kText), startup;
      ResolvedStrategies resolved(requests, two);
      resolved.validate(main);
    });
  };
  EXPECT_TRUE(contains(apply(local(0)), "'k_steps' is 0"));
  EXPECT_TRUE(contains(apply(local(2, -1)), "'begin_step' is -1"));
  EXPECT_TRUE(contains(apply({{"localsgd"}}), "needs strategy 'data_parallel'"));
  for (const char* other : {"adaptive_localsgd", "dgc"}) {
    auto both = local(2);
    both.push_back({other});
    EXPECT_TRUE(contains(apply(both), "cannot be used together")) << other;
  }
  fleet::DistributedStrategy s;
  EXPECT_TRUE(contains(error_of([&] {
                         s.set_configs("localsgd_configs", {{"k_steps", 0}});
                       }),
                       "localsgd_configs['k_steps']"));
}

TEST(LocalSgd, FollowsFromTheSettings) {
  fleet::DistributedStrategy s;
  s.localsgd = true;
  s.localsgd_configs.k_steps = 8;
  const auto requests = fleet::requests_of(s, fleet::mesh_of(s, 2, 0));
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_FALSE(requests[0].options.at("average").as<bool>());
  EXPECT_EQ(requests[1].name, "localsgd");
  EXPECT_EQ(requests[1].options.at("k_steps").as<int64_t>(), 8);
  EXPECT_FALSE(requests[1].idle);
  EXPECT_TRUE(fleet::requests_of(s, fleet::mesh_of(s, 1, 0)).at(0).idle);  // nobody to average with
}

}  // namespace
}  // namespace fleetx::strategies::localsgd_test
