// Stages of a network on workers of their own: they compute what one worker computes with the same
// micro-batches.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "fleetx/runtime/planner.h"
#include "fleetx/strategies/pipeline_cut.h"
#include "fleetx/strategies/pipeline_schedule.h"
#include "tests/strategies/mesh_training.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing::pipeline_test {
namespace {

using ir::Builder;
using ir::Var;
using strategies::Schedule;
using strategies::Slot;
using Network = std::function<Var(Builder&)>;

struct Job {
  int pp = 1, dp = 1;
  int64_t micro_batches = 4;
  std::string schedule = "1F1B";
  Network net;
  std::string optimizer = "momentum";
  optim::Clip clip = {};
  std::vector<strategies::Request> more = {};
  int steps = 6;
  int64_t batch = 24;
  int64_t micro_batch_size = 1;  // any
  std::string load = "", save = "";
  ir::Names fetch = {};  // beside the loss
};

std::string value_group(int pp) { return str("pp/", pp); }

struct Made {
  ir::Program main, startup;
  std::string loss;
};

Made make(const Job& job, int rank) {
  Made made;
  Builder b(made.main, made.startup);
  const Var loss = job.net(b);
  made.loss = loss.name();
  made.startup.set_seed(7);
  std::vector<strategies::Request> requests = job.more;
  requests.push_back({"pipeline",
                      {{"micro_batches", job.micro_batches},
                       {"micro_batch_size", job.micro_batch_size},
                       {"schedule", job.schedule}}});
  if (job.dp > 1) requests.push_back({"data_parallel"});
  strategies::ResolvedStrategies resolved(requests,
                                          {.mesh = Mesh({{"pp", job.pp}, {"dp", job.dp}}, rank)});
  const auto optimizer = optim::make(job.optimizer, {{"lr", 0.1}}, {.clip = job.clip});
  strategies::minimize(
      {made.main, made.startup}, resolved, [&] { (void)optimizer->backward(loss); },
      [&] { optimizer->apply_gradients(autograd::trained(b)); });
  return made;
}

struct Result {
  std::vector<std::vector<float>> losses;  // by rank
  std::vector<std::map<std::string, Tensor>> fetched;
  std::vector<std::map<std::string, Tensor>> state;  // by rank
};

Result train(const Job& job) {
  const int world = job.pp * job.dp;
  const auto groups =
      groups_of(Mesh({{"pp", job.pp}, {"dp", job.dp}}, 0), {"pp", value_group(job.pp), "dp"});
  Result result;
  result.losses.resize(static_cast<size_t>(world));
  result.fetched.resize(static_cast<size_t>(world));
  result.state.resize(static_cast<size_t>(world));
  std::mutex building;
  run_workers(world, [&](int rank, const SharedGroups&) {
    const auto r = static_cast<size_t>(rank);
    std::unique_lock lock(building);
    const Made made = make(job, rank);
    lock.unlock();
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups[r]}});
    exe.run(made.startup, scope);
    if (!job.load.empty())
      train::load_checkpoint(train::latest_checkpoint(job.load), scope, {{"main", &made.main}},
                             groups[r]);
    const TrainOptions data{.workers = job.dp, .batch = job.batch};
    for (int step = 0; step < job.steps; ++step) {
      ir::Names fetch = job.fetch;
      fetch.push_back(made.loss);
      const auto out = exe.run(made.main, scope, batch_of(step, data, rank % job.dp), fetch);
      result.losses[r].push_back(out.back().item<float>());
      for (size_t i = 0; i + 1 < out.size(); ++i)
        result.fetched[r].insert_or_assign(fetch[i], out[i].clone());
    }
    if (!job.save.empty())
      train::save_checkpoint(job.save, scope, {{"main", &made.main}}, {},
                             {.writes = rank == 0, .groups = groups[r]});
    for (const std::string& name : scope.names())
      result.state[r].emplace(name, scope.get(name).clone());
    result.state[r].erase("@worker_weight@");
  });
  return result;
}

void expect_same_training(const Result& got, const Result& want, double tolerance,
                          const std::string& what) {
  std::set<std::string> seen;
  for (size_t rank = 0; rank < got.losses.size(); ++rank) {
    for (const auto& [name, value] : got.state[rank]) {
      seen.insert(name);
      ASSERT_TRUE(want.state[0].contains(name)) << name;
      expect_close(value, want.state[0].at(name), tolerance, str(what, ", ", name));
    }
  }
  EXPECT_EQ(seen.size(), want.state[0].size()) << what;
  // Each worker has the loss of its part of the batch.
  const auto mean = [](const Result& of, size_t step) {
    double sum = 0;
    for (const auto& losses : of.losses) sum += static_cast<double>(losses[step]);
    return sum / static_cast<double>(of.losses.size());
  };
  for (size_t i = 0; i < want.losses[0].size(); ++i)
    EXPECT_NEAR(mean(got, i), mean(want, i), tolerance * std::abs(mean(want, i)))
        << what << ", loss of step " << i;
}

// Four layers, two on each of two stages.
Var guarded(Builder& b) {
  const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
  Var h;
  {
    const auto stage = b.in_stage(0);
    h = nn::fc(nn::fc(x, {.size = 16, .act = "tanh"}), {.size = 8, .act = "relu"});
  }
  const auto stage = b.in_stage(1);
  h = nn::fc(h, {.size = 8, .act = "tanh"});
  return nn::mean(nn::softmax_cross_entropy(nn::fc(h, {.size = 5}), y));
}

TEST(Pipeline, Schedules) {
  const auto text = [](Schedule schedule, int stage, int stages, int micro_batches) {
    std::string out;
    for (const Slot& slot : strategies::slots_of(schedule, {stage, stages, micro_batches}))
      out += str(slot.forward ? "F" : "B", slot.micro_batch, " ");
    return out;
  };
  const auto both = Schedule::kForwardThenBackward, one = Schedule::kOneForwardOneBackward;
  EXPECT_EQ(text(both, 0, 2, 3), "F0 F1 F2 B0 B1 B2 ");
  EXPECT_EQ(text(one, 0, 2, 3), "F0 F1 B0 F2 B1 B2 ");
  EXPECT_EQ(text(one, 1, 2, 3), "F0 B0 F1 B1 F2 B2 ");
  EXPECT_EQ(text(one, 0, 4, 4), "F0 F1 F2 F3 B0 B1 B2 B3 ");
  EXPECT_EQ(text(one, 2, 4, 4), "F0 F1 B0 F2 B1 F3 B2 B3 ");
  EXPECT_EQ(text(one, 0, 1, 2), "F0 B0 F1 B1 ");
}

TEST(Pipeline, TwoStagesComputeWhatOneDoes) {
  Job job{.net = guarded};
  const Result one = train(job);
  job.pp = 2;
  for (const char* schedule : {"1F1B", "F-then-B"}) {
    job.schedule = schedule;
    expect_same_training(train(job), one, 1e-6, schedule);
  }
}

// The labels are on another stage than the data, whose sizes are sent with them.
TEST(Pipeline, SizeOfAMicroBatch) {
  Job job{.net = guarded};
  const Result any = train(job);
  job.micro_batch_size = 6;
  expect_same_training(train(job), any, 1e-6, "one stage");
  job.pp = 2;
  expect_same_training(train(job), any, 1e-6, "two stages");
  job.pp = 1;
  job.batch = 20;
  expect_error(Error::Kind::kInvalidArgument, {"20, but 4 parts of 6 make 24"},
               [&] { train(job); });
}

// ---- text ----

using Lines = std::vector<std::string>;

// The ops of the program.
Lines lines_of(const ir::Program& program) {
  Lines lines;
  std::istringstream text(ir::to_text(program));
  bool ops = false;
  for (std::string line; std::getline(text, line);) {
    if (line == "forward:" || line == "backward:" || line == "update:") ops = true;
    if (line == "training:") ops = false;
    if (ops && !line.empty()) lines.push_back(line.substr(0, line.find(" @ ")));  // the user's line
  }
  return lines;
}

constexpr const char* kTwoLayers = R"(program
data x : f32[-1,4]
param w1 : f32[4,3]
param w2 : f32[3,2]
var h : f32[-1,3]
var y : f32[-1,2]
var loss : f32[1]

forward:
h = fc(x, w1, _) on 0
y = fc(h, w2, _) on 1
loss = mean(y) on 1
)";

Made two_layers(int rank, const std::string& schedule) {
  Made made;
  made.main = ir::parse_text(kTwoLayers);
  Builder b(made.main, made.startup);
  strategies::ResolvedStrategies resolved(
      {{"pipeline", {{"micro_batches", 2}, {"schedule", schedule}}}},
      {.mesh = Mesh({{"pp", 2}, {"dp", 1}}, rank)});
  const auto sgd = optim::make("sgd", {{"lr", 0.1}});
  strategies::minimize(
      {made.main, made.startup}, resolved, [&] { (void)sgd->backward(b.var("loss")); },
      [&] { sgd->apply_gradients(autograd::trained(b)); });
  return made;
}

TEST(Pipeline, TextOfTheFirstStage) {
  const Made made = two_layers(0, "1F1B");
  EXPECT_EQ(
      lines_of(made.main),
      (Lines{
          "forward:",
          R"([x@MB0, x@MB1] = split(x) {name="pp", micro_batches=true})",
          "backward:",
          R"(loss@GRAD = fill() {name="fill_0", shape=[1], value=1.0})",
          R"(loss@GRAD@MB = scale(loss@GRAD) {name="pp", scale=0.5})",
          "forward:",
          "h@MB0 = fc(x@MB0, w1, _)",
          R"(send_ticket = send_start([h@MB0], _) {name="pp", group="pp/2", peer=1})",
          "backward:",
          R"([h@GRAD@MB0], recv_ticket = recv_start(x, _) {name="pp", group="pp", parts=2, peer=1, per_row=[1,0], shape=[0,3], tag=1})",
          "forward:",
          "h@MB1 = fc(x@MB1, w1, _)",
          R"([h@MB0@SENT1] = send_wait([h@MB0], send_ticket) {name="pp", group="pp/2", peer=1})",
          R"(send_ticket_1 = send_start([h@MB1], _) {name="pp", group="pp/2", peer=1})",
          "backward:",
          R"([h@GRAD@MB0] = recv_wait([h@GRAD@MB0], recv_ticket) {name="pp", group="pp", peer=1, tag=1})",
          R"(x@GRAD@MB0, w1@GRAD@MB0, _ = fc_grad(x@MB0, w1, _, _, h@GRAD@MB0) {name="fc_grad_1"})",
          R"([h@GRAD@MB1], recv_ticket_1 = recv_start(x, _) {name="pp", group="pp", parts=2, peer=1, per_row=[1,0], shape=[0,3], tag=1})",
          R"([h@GRAD@MB1] = recv_wait([h@GRAD@MB1], recv_ticket_1) {name="pp", group="pp", peer=1, tag=1})",
          R"(x@GRAD@MB1, w1@GRAD@MB1, _ = fc_grad(x@MB1, w1, _, _, h@GRAD@MB1) {name="fc_grad_1"})",
          R"(w1@GRAD = sum([w1@GRAD@MB0, w1@GRAD@MB1]) {name="pp"})",
          "forward:",
          R"([h@MB1@SENT1] = send_wait([h@MB1], send_ticket_1) {name="pp", group="pp/2", peer=1})",
          R"(loss@OWN = fill() {name="pp", shape=[1]})",
          R"([loss] = broadcast([loss@OWN]) {name="pp", group="pp", root=1})",
          "update:",
          R"([w1] = sgd([w1], [w1@GRAD], learning_rate_0, _) {name="sgd_1", l1=[0.0], l2=[0.0], lr_factors=[1.0]})",
          R"(@step@ = increment(@step@) {name="increment_0"})"}));
  EXPECT_EQ(made.main.var("w2").placement, ir::Placement::owned("pp", 1));
  EXPECT_EQ(made.main.training().find("w2"), nullptr);
}

TEST(Pipeline, TextOfTheLastStage) {
  EXPECT_EQ(
      lines_of(two_layers(1, "F-then-B").main),
      (Lines{
          "forward:",
          R"([h@MB0], recv_ticket = recv_start(x, _) {name="pp", group="pp/2", parts=2, peer=0, per_row=[1,0], shape=[0,3]})",
          "backward:",
          R"(loss@GRAD = fill() {name="fill_0", shape=[1], value=1.0})",
          R"(loss@GRAD@MB = scale(loss@GRAD) {name="pp", scale=0.5})",
          "forward:",
          R"([h@MB0] = recv_wait([h@MB0], recv_ticket) {name="pp", group="pp/2", peer=0})",
          "y@MB0 = fc(h@MB0, w2, _)",
          "loss@MB0 = mean(y@MB0)",
          R"([h@MB1], recv_ticket_1 = recv_start(x, _) {name="pp", group="pp/2", parts=2, peer=0, per_row=[1,0], shape=[0,3]})",
          R"([h@MB1] = recv_wait([h@MB1], recv_ticket_1) {name="pp", group="pp/2", peer=0})",
          "y@MB1 = fc(h@MB1, w2, _)",
          "loss@MB1 = mean(y@MB1)",
          "backward:",
          R"(y@GRAD@MB0 = mean_grad(y@MB0, loss@GRAD@MB) {name="mean_grad_0"})",
          R"(h@GRAD@MB0, w2@GRAD@MB0, _ = fc_grad(h@MB0, w2, _, _, y@GRAD@MB0) {name="fc_grad_0"})",
          R"(send_ticket = send_start([h@GRAD@MB0], _) {name="pp", group="pp", peer=0, tag=1})",
          R"(y@GRAD@MB1 = mean_grad(y@MB1, loss@GRAD@MB) {name="mean_grad_0"})",
          R"(h@GRAD@MB1, w2@GRAD@MB1, _ = fc_grad(h@MB1, w2, _, _, y@GRAD@MB1) {name="fc_grad_0"})",
          R"(w2@GRAD = sum([w2@GRAD@MB0, w2@GRAD@MB1]) {name="pp"})",
          R"([h@GRAD@MB0@SENT0] = send_wait([h@GRAD@MB0], send_ticket) {name="pp", group="pp", peer=0, tag=1})",
          R"(send_ticket_1 = send_start([h@GRAD@MB1], _) {name="pp", group="pp", peer=0, tag=1})",
          R"([h@GRAD@MB1@SENT0] = send_wait([h@GRAD@MB1], send_ticket_1) {name="pp", group="pp", peer=0, tag=1})",
          "forward:",
          R"(loss@SUM = sum([loss@MB0, loss@MB1]) {name="pp"})",
          R"(loss@OWN = scale(loss@SUM) {name="pp", scale=0.5})",
          R"([loss] = broadcast([loss@OWN]) {name="pp", group="pp", root=1})",
          "update:",
          R"([w2] = sgd([w2], [w2@GRAD], learning_rate_0, _) {name="sgd_0", l1=[0.0], l2=[0.0], lr_factors=[1.0]})",
          R"(@step@ = increment(@step@) {name="increment_0"})"}));
}

// ---- training ----

TEST(Pipeline, ThreeStagesWithDataThatGoEverywhere) {
  // Each stage reads the data and the value of the first: messages go over stages.
  const Network net = [](Builder& b) {
    const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
    const auto on = [&](int stage, const auto& make) {
      const auto guard = b.in_stage(stage);
      return make();
    };
    const Var first = on(0, [&] { return nn::fc(x, {.size = 8, .act = "tanh"}); });
    const Var second =
        on(1, [&] { return nn::add(nn::fc(first, {.size = 8, .act = "tanh"}), first); });
    return on(2, [&] {
      const Var h = nn::add(nn::fc(second, {.size = 8}), nn::fc(nn::scale(x, 0.5), {.size = 8}));
      return nn::mean(
          nn::softmax_cross_entropy(nn::fc(nn::add(nn::tanh(h), first), {.size = 5}), y));
    });
  };
  Job job{.net = net};
  const Result one = train(job);
  job.pp = 3;
  for (const char* schedule : {"1F1B", "F-then-B"}) {
    job.schedule = schedule;
    expect_same_training(train(job), one, 1e-6, schedule);
  }
}

// Without guards the framework cuts.
Var plain(Builder& b) {
  const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
  Var h = x;
  for (int i = 0; i < 4; ++i) h = nn::fc(h, {.size = 12, .act = "tanh"});
  return nn::mean(nn::softmax_cross_entropy(nn::fc(h, {.size = 5}), y));
}

TEST(Pipeline, CutByTheFramework) {
  Job job{.net = plain, .optimizer = "adam"};
  const Result one = train(job);
  for (const int stages : {2, 3}) {
    job.pp = stages;
    expect_same_training(train(job), one, 1e-6, str(stages, " stages"));
  }
}

TEST(Pipeline, WithDataParallel) {
  Job job{.net = plain};
  const Result one = train(job);
  job.pp = job.dp = 2;
  job.micro_batches = 2;  // of half the batch
  expect_same_training(train(job), one, 2e-6, "2 x 2");
}

TEST(Pipeline, WithGlobalNorm) {
  Job job{.net = plain, .clip = optim::clip_by_global_norm(0.05)};
  const Result one = train(job);
  for (const int stages : {2, 3}) {
    job.pp = stages;
    expect_same_training(train(job), one, 1e-6, str(stages, " stages"));
  }
}

// The table is looked up on the first stage and multiplied with on the last.
Var tied(Builder& b) {
  const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
  Var h;
  {
    const auto stage = b.in_stage(0);
    const Var rows = nn::embedding(nn::reshape(y, {-1}), {.rows = 5, .dim = 12, .name = "table"});
    h = nn::fc(nn::add(x, nn::scale(rows, 0.1)), {.size = 12, .act = "tanh"});
  }
  {
    const auto stage = b.in_stage(1);
    h = nn::fc(h, {.size = 12, .act = "tanh"});
  }
  const auto stage = b.in_stage(2);
  h = nn::fc(h, {.size = 12});
  return nn::mean(
      nn::softmax_cross_entropy(nn::matmul(h, b.var("table.w_0"), {.transpose_y = true}), y));
}

TEST(Pipeline, ParameterOfTwoStages) {
  Job job{.net = tied, .clip = optim::clip_by_global_norm(0.05)};
  const Result one = train(job);
  job.pp = 3;
  for (const char* schedule : {"1F1B", "F-then-B"}) {
    job.schedule = schedule;
    expect_same_training(train(job), one, 1e-6, schedule);
  }
  job.dp = 2;
  job.micro_batches = 2;
  expect_same_training(train(job), one, 2e-6, "3 x 2");
}

Var normed(Builder& b) {
  const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
  Var h = x;
  for (int i = 0; i < 3; ++i)
    h = nn::dropout(nn::relu(nn::batch_norm(nn::fc(h, {.size = 12}))), {.p = 0.2});
  return nn::mean(nn::softmax_cross_entropy(nn::fc(h, {.size = 5}), y));
}

TEST(Pipeline, BatchNormAndDropout) {
  Job job{.net = normed};
  const Result one = train(job);
  for (const char* schedule : {"1F1B", "F-then-B"})
    for (const int stages : {2, 3}) {
      job.pp = stages;
      job.schedule = schedule;
      expect_same_training(train(job), one, 1e-6, str(stages, " stages, ", schedule));
    }
}

TEST(Pipeline, WithRecompute) {
  Job job{.net = normed};
  const Result one = train(job);
  job.more = {{"recompute"}};
  expect_same_training(train(job), one, 1e-6, "alone");
  job.pp = 2;
  expect_same_training(train(job), one, 1e-6, "2 stages");
}

TEST(Pipeline, WithAmp) {
  Job job{.net = plain, .clip = optim::clip_by_global_norm(0.5), .more = {{"amp"}}};
  const Result one = train(job);
  job.pp = 2;
  expect_same_training(train(job), one, 1e-6, "2 stages");
  job.dp = 2;
  job.micro_batches = 2;
  // Halves are rounded: another order of sums is another value.
  expect_same_training(train(job), one, 1e-2, "2 x 2");
}

TEST(Pipeline, WithOtherStrategies) {
  for (const auto& [name, optimizer] : {std::pair{"lars", "momentum"}, {"lamb", "adam"}}) {
    Job job{.net = plain, .optimizer = optimizer, .more = {{name}}};
    const Result one = train(job);
    job.pp = 2;
    expect_same_training(train(job), one, 1e-6, name);
  }
  for (const std::string name : {"sync_batch_norm", "fp16_allreduce"}) {
    Job job{.dp = 2, .micro_batches = 2, .net = normed, .more = {{name}}};
    if (name == "fp16_allreduce") job.net = plain;
    const Result one = train(job);
    job.pp = 2;
    expect_same_training(train(job), one, 1e-6, name);
  }
}

TEST(Pipeline, CheckpointsAreThoseOfAnyNumberOfStages) {
  TempDir folder;
  Job job{.net = tied, .optimizer = "adam", .steps = 4};
  for (const auto& [from, to] : {std::pair{1, 3}, {3, 1}, {3, 3}}) {
    Job whole = job;
    whole.steps = 4;
    Job first = job, second = job;
    first.pp = from;
    first.save = folder.path() + str("/", from, to);
    second.pp = to;
    second.load = first.save;
    train(first);
    Job reference = job;
    reference.load = first.save;
    expect_same_training(train(second), train(reference), 2e-6, str(from, " to ", to));
  }
}

// ---- results ----

TEST(Pipeline, ResultsAreFetchedAnywhere) {
  const Network net = [](Builder& b) {
    const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
    const Var h = nn::fc(x, {.size = 8, .act = "tanh", .name = "first"});
    const Var logits = nn::fc(h, {.size = 5, .name = "last"});
    b.op("scale", {{"x", logits}}, {}, {{"out", "rows"}});
    b.op("mean", {{"x", logits}}, {}, {{"out", "average"}});
    return nn::mean(nn::softmax_cross_entropy(logits, y));
  };
  Job job{.net = net, .steps = 1, .fetch = {"average"}};
  const Result one = train(job);
  job.pp = 2;
  const Result two = train(job);
  for (const auto& fetched : two.fetched)
    expect_close(fetched.at("average"), one.fetched[0].at("average"), 1e-6, "average");
  job.pp = 1;
  job.fetch = {"rows"};
  EXPECT_EQ(train(job).fetched[0].at("rows").shape(), Shape({24, 5}));
  const Made first = make({.pp = 2, .net = net}, 0);
  runtime::PlanOptions options;
  options.mesh = Mesh({{"pp", 2}, {"dp", 1}}, 0);
  expect_error(Error::Kind::kInvalidArgument, {"fetch 'rows': stage 1 of the pipeline computes it"},
               [&] {
                 runtime::plan_program(first.main, {{"x", {f32, {24, 12}}}, {"y", {i64, {24, 1}}}},
                                       {"rows"}, options);
               });
}

// ---- memory ----

size_t peak_of(const Job& job, int rank) {
  const Made made = make(job, rank);
  runtime::PlanOptions options;
  options.mesh = Mesh({{"pp", job.pp}, {"dp", job.dp}}, rank);
  return runtime::plan_program(made.main, {{"x", {f32, {4096, 12}}}, {"y", {i64, {4096, 1}}}},
                               {made.loss}, options)
      .peak_bytes();
}

TEST(Pipeline, OneForwardOneBackwardNeedsLessMemory) {
  Job job{.pp = 2, .micro_batches = 8, .net = plain};
  const size_t one = peak_of(job, 0);
  job.schedule = "F-then-B";
  const size_t all = peak_of(job, 0);
  EXPECT_LT(static_cast<double>(one), 0.6 * static_cast<double>(all));
}

// ---- refused ----

TEST(Pipeline, RefusesWhatCannotWork) {
  const auto refuses = [](const Job& job, const std::string& message) {
    expect_error(Error::Kind::kInvalidArgument, {message}, [&] { make(job, 0); });
  };
  const auto layers = [](std::vector<int> stages) {
    return [stages](Builder& b) {
      const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
      Var h = x;
      for (const int at : stages) {
        const auto stage = b.in_stage(at);
        h = nn::fc(h, {.size = 12});
      }
      const auto stage = b.in_stage(stages.back());
      return nn::mean(nn::softmax_cross_entropy(h, y));
    };
  };
  refuses({.pp = 2, .net = layers({0, 1, 0})}, "values cannot go back to an earlier stage");
  refuses({.pp = 3, .net = layers({0, 2})}, "no op stands under 1");
  refuses({.pp = 3, .net = layers({0, 1})},
          "device_guards name 2 stages, but hybrid_configs.pp_degree is 3");
  refuses({.pp = 2, .micro_batches = 1, .net = plain},
          "set pipeline_configs['accumulate_steps'] to 2");
  refuses({.pp = 8,
           .micro_batches = 8,
           .schedule = "F-then-B",
           .net =
               [](Builder& b) {
                 return nn::mean(nn::fc(b.data("x", f32, {-1, 12}), {.size = 2}));
               }},
          "has only 1 such; set hybrid_configs.pp_degree to 1 at most");
  refuses({.pp = 2,
           .net =
               [](Builder& b) {
                 const Var x = b.data("x", f32, {-1, 12});
                 Var h;
                 {
                   const auto stage = b.in_stage(0);
                   h = nn::fc(x, {.size = 3});
                 }
                 const auto stage = b.in_stage(1);
                 return nn::mean(nn::tanh(h));
               }},
          "stage 1 of 2");
  refuses({.pp = 2,
           .net =
               [](Builder& b) {
                 const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
                 const auto look = [&](int at) {
                   const auto stage = b.in_stage(at);
                   return nn::embedding(nn::reshape(y, {-1}),
                                        {.rows = 5, .dim = 12, .sparse = true, .name = "table"});
                 };
                 Var h = nn::add(look(0), x);
                 const auto stage = b.in_stage(1);
                 h = nn::fc(h, {.size = 12});
                 const Var again =
                     b.op("embedding", {{"w", b.var("table.w_0")}, {"ids", nn::reshape(y, {-1})}},
                          {{"sparse", true}});
                 return nn::mean(nn::add(h, again));
               }},
          "rows, which do not travel between stages");
  refuses({.pp = 2, .schedule = "2F2B", .net = plain}, "must be \"1F1B\" or \"F-then-B\"");
  refuses({.pp = 2, .net = plain, .more = {{"gradient_merge", {{"k_steps", 2}}}}},
          "raise pipeline_configs['accumulate_steps'] instead");
}

}  // namespace
}  // namespace fleetx::testing::pipeline_test
