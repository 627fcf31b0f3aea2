// Stages of a pipeline whose workers divide state between them: they compute what one worker
// computes with the same micro-batches, and hold what their share says.
#include <gtest/gtest.h>

#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "fleetx/nn/parallel.h"
#include "tests/strategies/mesh_training.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing::hybrid_test {
namespace {

using ir::Builder;
using ir::Var;
using strategies::Request;

Request sharding(int64_t stage, int64_t degree = 0, double segment = 32) {
  return {"sharding", {{"stage", stage}, {"degree", degree}, {"segment_MB", segment}}};
}

// The framework cuts it.
Var plain(Builder& b, int = 1) {
  const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
  Var h = x;
  for (int i = 0; i < 4; ++i) h = nn::fc(h, {.size = 12, .act = "tanh"});
  return nn::mean(nn::softmax_cross_entropy(nn::fc(h, {.size = 5}), y));
}

// The table is looked up on the first stage and multiplied with on the last.
Var tied(Builder& b, int = 1) {
  const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
  Var h;
  {
    const auto stage = b.in_stage(0);
    const Var rows = nn::embedding(nn::reshape(y, {-1}), {.rows = 5, .dim = 12, .name = "table"});
    h = nn::fc(nn::add(x, nn::scale(rows, 0.1)), {.size = 12, .act = "tanh"});
  }
  const auto stage = b.in_stage(1);
  h = nn::fc(h, {.size = 12, .act = "tanh"});
  return nn::mean(
      nn::softmax_cross_entropy(nn::matmul(h, b.var("table.w_0"), {.transpose_y = true}), y));
}

TEST(Hybrid, ShardedStagesComputeWhatOneWorkerDoes) {
  MeshJob job{.net = plain};
  const MeshResult one = train(job);
  job.pp = job.dp = 2;
  for (const char* schedule : {"1F1B", "F-then-B"})
    for (const int64_t stage : {1, 2, 3}) {
      job.schedule = schedule;
      job.more = {sharding(stage)};
      expect_equal(train(job), one, 1e-6, str(schedule, ", sharding stage ", stage));
    }
}

// A segment for each parameter: it comes again for every micro-batch.
TEST(Hybrid, SmallSegments) {
  MeshJob job{.net = plain, .optimizer = "adam"};
  const MeshResult one = train(job);
  job.pp = job.dp = 2;
  job.more = {sharding(3, 0, 1e-6)};
  expect_equal(train(job), one, 2e-6, "adam");
}

// Two copies of two workers that divide, on each of two stages.
TEST(Hybrid, CopiesOfShardedStages) {
  MeshJob job{.net = plain, .clip = optim::clip_by_global_norm(0.05)};
  job.micro_batches = 8;
  const MeshResult one = train(job);
  job.pp = 2;
  job.dp = 4;
  for (const int64_t stage : {1, 2, 3}) {
    job.more = {sharding(stage, 2)};
    expect_equal(train(job), one, 1e-6, str("sharding stage ", stage));
  }
}

TEST(Hybrid, GlobalNormOverStagesAndOwners) {
  MeshJob job{.net = plain, .clip = optim::clip_by_global_norm(0.05)};
  const MeshResult one = train(job);
  job.pp = job.dp = 2;
  for (const int64_t stage : {1, 2, 3}) {
    job.more = {sharding(stage)};
    expect_equal(train(job), one, 1e-6, str("sharding stage ", stage));
  }
}

TEST(Hybrid, ParameterOfTwoStages) {
  MeshJob job{.net = tied, .clip = optim::clip_by_global_norm(0.05)};
  const MeshResult one = train(job);
  job.pp = job.dp = 2;
  for (const double segment : {32.0, 1e-6})
    for (const int64_t stage : {1, 2, 3}) {
      job.more = {sharding(stage, 0, segment)};
      expect_equal(train(job), one, 1e-6, str("sharding stage ", stage, ", segment ", segment));
    }
}

TEST(Hybrid, BesideOtherStrategies) {
  for (const auto& [name, optimizer] :
       {std::pair{"lars", "momentum"}, {"lamb", "adam"}, {"recompute", "momentum"}}) {
    MeshJob job{.net = plain, .optimizer = optimizer, .more = {{name}}};
    const MeshResult one = train(job);
    job.pp = job.dp = 2;
    for (const int64_t stage : {1, 2, 3}) {
      job.more = {{name}, sharding(stage)};
      expect_equal(train(job), one, 2e-6, str(name, ", sharding stage ", stage));
    }
  }
}

// All workers leave a step out together; the sums of halves depend on their order.
TEST(Hybrid, BesideAmp) {
  MeshJob job{.dp = 2, .net = plain, .clip = optim::clip_by_global_norm(0.5), .more = {{"amp"}}};
  const MeshResult one = train(job);
  job.pp = 2;
  for (const int64_t stage : {1, 2, 3}) {
    job.more = {{"amp"}, sharding(stage)};
    expect_equal(train(job), one, 1e-6, str("sharding stage ", stage));
  }
}

TEST(Hybrid, CheckpointsLoadIntoAnyDivision) {
  const MeshJob job{.net = tied, .optimizer = "adam", .steps = 3};
  const auto divided = [&](int pp, int dp, int64_t stage) {
    MeshJob made = job;
    made.pp = pp;
    made.dp = dp;
    if (stage > 0) made.more = {sharding(stage)};
    return made;
  };
  const std::vector<MeshJob> jobs{divided(1, 1, 0), divided(2, 2, 1), divided(2, 2, 3),
                                  divided(1, 2, 3), divided(2, 1, 0)};
  for (const MeshJob& from : jobs)
    for (const MeshJob& to : jobs) {
      TempDir folder;
      MeshJob first = from, second = to, want = job;
      first.save = second.load = want.load = folder.path();
      train(first);
      expect_equal(train(second), train(want), 2e-6,
                   str(from.pp, " x ", from.dp, " to ", to.pp, " x ", to.dp));
    }
}

// ---- with divided layers ----

// Nothing in it speaks of ranks or stages.
Var transformer(Builder& b, int = 1) {
  const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
  Var h = nn::reshape(nn::fc(x, {.size = 24}), {-1, 3, 8});
  for (int i = 0; i < 2; ++i)
    h = nn::encoder_layer(h, {.heads = 4,
                              .intermediate = 16,
                              .act = "gelu",
                              .dropout = 0,
                              .attention_dropout = 0,
                              .name = str("layer_", i)});
  return nn::mean(nn::softmax_cross_entropy(nn::fc(h, {.size = 5}), y));
}

// Layers that the user has split, on stages of the user.
Var split(Builder& b, int n) {
  const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
  const auto pair = [&](const Var& in) {
    const Var h = nn::parallel_linear(
        in, {.rows = 12, .columns = 16, .axis = 1, .partitions = n, .gather_out = false});
    return nn::parallel_linear(nn::tanh(h),
                               {.rows = 16, .columns = 12, .axis = 0, .partitions = n});
  };
  Var h;
  {
    const auto stage = b.in_stage(0);
    h = nn::tanh(nn::add(
        x, nn::parallel_embedding(nn::reshape(y, {-1}), {.rows = 8, .dim = 12, .partitions = n})));
    h = nn::layer_norm(pair(h));
  }
  const auto stage = b.in_stage(1);
  return nn::mean(nn::softmax_cross_entropy(nn::fc(pair(h), {.size = 5}), y));
}

const std::vector<std::pair<std::string, Var (*)(Builder&, int)>> kNetworks{
    {"transformer", transformer}, {"split", split}};

TEST(Hybrid, DividedLayersOnStages) {
  for (const auto& [name, net] : kNetworks) {
    MeshJob job{.net = net, .clip = optim::clip_by_global_norm(0.05)};
    const MeshResult one = train(job);
    job.pp = job.mp = 2;
    for (const char* schedule : {"1F1B", "F-then-B"}) {
      job.schedule = schedule;
      expect_equal(train(job), one, 1e-6, str(name, ", ", schedule));
    }
  }
}

TEST(Hybrid, DividedLayersOfShardedWorkers) {
  for (const auto& [name, net] : kNetworks) {
    MeshJob job{.micro_batches = 0, .net = net, .clip = optim::clip_by_global_norm(0.05)};
    const MeshResult one = train(job);
    job.dp = job.mp = 2;
    for (const int64_t stage : {1, 2, 3}) {
      job.more = {sharding(stage)};
      expect_equal(train(job), one, 1e-6, str(name, ", sharding stage ", stage));
    }
  }
}

TEST(Hybrid, AllOfIt) {
  for (const auto& [name, net] : kNetworks) {
    MeshJob job{.net = net, .clip = optim::clip_by_global_norm(0.05)};
    const MeshResult one = train(job);
    job.pp = job.dp = job.mp = 2;
    for (const int64_t stage : {0, 1, 2, 3}) {
      job.more.clear();
      if (stage > 0) job.more = {sharding(stage)};
      expect_equal(train(job), one, 1e-6, str(name, ", sharding stage ", stage));
    }
  }
}

TEST(Hybrid, AllOfItBesideAmpAndRecompute) {
  MeshJob job{.dp = 2, .net = split, .more = {{"amp"}, {"recompute"}}};
  const MeshResult one = train(job);
  job.pp = job.mp = 2;
  job.more.push_back(sharding(2));
  // Halves are rounded: a sum of parts is another value.
  expect_equal(train(job), one, 2e-2, "amp, recompute, sharding stage 2");
}

TEST(Hybrid, CheckpointsOfPartsOfStages) {
  const MeshJob job{.net = split, .steps = 3};
  for (const int64_t stage : {0, 1, 3}) {
    TempDir folder;
    MeshJob first = job, second = job, want = job;
    first.pp = first.dp = first.mp = 2;
    if (stage > 0) first.more = {sharding(stage)};
    second.pp = 2;
    second.mp = 4;
    first.save = second.load = want.load = folder.path();
    train(first);
    expect_equal(train(second), train(want), 1e-6, str("2 x 2 x 2, sharding stage ", stage));
    // And back.
    TempDir other;
    second.save = other.path();
    train(second);
    first.load = want.load = other.path();
    expect_equal(train(first), train(want), 1e-6, str("to 2 x 2 x 2, sharding stage ", stage));
  }
}

// ---- what a worker holds, and the text ----

TEST(Hybrid, AWorkerHoldsItsShareOfItsStage) {
  MeshJob job{.net = plain, .steps = 1};
  const Held all = train(job).held[0];
  job.pp = job.dp = 2;
  for (const int64_t stage : {1, 3}) {
    job.more = {sharding(stage)};
    size_t parameters = 0, others = 0;
    for (const Held& h : train(job).held) {
      parameters += h.parameters;
      others += h.others;
      EXPECT_LT(h.others, all.others / 2) << "sharding stage " << stage;
    }
    EXPECT_EQ(parameters, all.parameters * (stage == 1 ? 2 : 1));
    // Beside the velocities, every worker has the rate, the counter and its weight.
    EXPECT_LT(others, all.others + 4 * 64);
  }
}

constexpr const char* kFourLayers = R"(program
data x : f32[-1,4]
param w1 : f32[4,4]
param w2 : f32[4,3]
param w3 : f32[3,3]
param w4 : f32[3,2]
var h1 : f32[-1,4]
var h2 : f32[-1,3]
var h3 : f32[-1,3]
var y : f32[-1,2]
var loss : f32[1]

forward:
h1 = fc(x, w1, _) on 0
h2 = fc(h1, w2, _) on 0
h3 = fc(h2, w3, _) on 1
y = fc(h3, w4, _) on 1
loss = mean(y) on 1
)";

// Of four layers two are on each of two stages, and one with each of two owners.
ir::Program four_layers(int rank, int64_t stage) {
  ir::Program main = ir::parse_text(kFourLayers), startup;
  Builder b(main, startup);
  strategies::ResolvedStrategies resolved(
      {{"pipeline", {{"micro_batches", 2}}}, {"data_parallel"}, sharding(stage)},
      {.mesh = Mesh({{"pp", 2}, {"dp", 2}}, rank)});
  const auto optimizer = optim::make("momentum", {{"lr", 0.1}});
  strategies::minimize(
      {main, startup}, resolved, [&] { (void)optimizer->backward(b.var("loss")); },
      [&] { optimizer->apply_gradients(autograd::trained(b)); });
  return main;
}

TEST(Hybrid, TextOfUpdates) {
  const ir::Program main = four_layers(3, 1);  // stage 1, the second of its workers
  std::vector<std::string> lines;
  for (const ir::Op& op : main.ops()) {
    const std::string line = ir::to_text(op);
    EXPECT_EQ(line.find("w1"), std::string::npos) << line;
    if (op.def->updates_parameters || op.type() == "broadcast_start")
      lines.push_back(line.substr(0, line.find(" {name")));
  }
  EXPECT_EQ(
      lines,
      (std::vector<std::string>{
          "[w4], [w4_velocity_0] = momentum([w4], [w4@GRAD], [w4_velocity_0], learning_rate_0, _)",
          R"([w3], broadcast_ticket = broadcast_start([w3], @step@) {group="dp"})",
          R"([w4], broadcast_ticket_1 = broadcast_start([w4], @step@) {group="dp", root=1})"}));
  for (const int rank : {0, 3}) {
    const ir::Program of_rank = four_layers(rank, 1);
    EXPECT_EQ(of_rank.var("w1").placement, ir::Placement::owned("pp", 0));
    EXPECT_EQ(of_rank.var("w4").placement, ir::Placement::owned("pp", 1));
    EXPECT_EQ(of_rank.var("w1_velocity_0").placement, ir::Placement::owned("pp+dp", 0));
    EXPECT_EQ(of_rank.var("w2_velocity_0").placement, ir::Placement::owned("pp+dp", 1));
    EXPECT_EQ(of_rank.var("w3_velocity_0").placement, ir::Placement::owned("pp+dp", 2));
    EXPECT_EQ(of_rank.var("w4_velocity_0").placement, ir::Placement::owned("pp+dp", 3));
    EXPECT_EQ(four_layers(rank, 3).var("w2").placement, ir::Placement::owned("pp+dp", 1));
  }
}

}  // namespace
}  // namespace fleetx::testing::hybrid_test
