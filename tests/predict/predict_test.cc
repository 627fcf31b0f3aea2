#include "fleetx/predict/predict.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/predict/op_time.h"
#include "fleetx/predict/report.h"
#include "fleetx/predict/samples.h"
#include "fleetx/runtime/planner.h"
#include "fleetx/strategies/strategy.h"
#include "tests/support/expect_error.h"

namespace fleetx::predict {
namespace {

using testing::contains;

constexpr double kMega = 1e6;

// Two hosts' worth of round numbers.
Machine machine() {
  Machine m;
  m.name = "round";
  m.cores = 4;
  m.memory_bytes = 1e9;
  m.f32_flops = m.half_flops = 1e9;
  m.memory_rate = 1e12;
  m.host = {.bytes_per_second = 100 * kMega};
  m.network = {.bytes_per_second = 10 * kMega};
  return m;
}

// y = x w, then all ranks add up y, which has a million numbers.
runtime::PlannedProgram plan_of(int ranks, int rank = 0) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var y = nn::fc(b.data("x", f32, {1000, 1000}), {.size = 1000, .bias = false});
  const std::vector<ir::Var> sums = b.op("all_reduce", {{"xs", std::vector<ir::Var>{y}}},
                                         {{"group", "dp"}, {"op", "sum"}}, {{"out", "sum"}})
                                        .all("out");
  runtime::PlanOptions options;
  options.mesh = Mesh({{"dp", ranks}}, rank);
  return runtime::plan_program(main, {{"x", {f32, {1000, 1000}}}}, {sums.front().name()}, options);
}

TEST(Predict, WorkIsDividedByTheCoresOfARank) {
  const runtime::PlannedProgram plan = plan_of(1);
  const Machine m = machine();
  const double alone = predict(plan, {.machine = m, .ranks_per_host = 1}).seconds;
  EXPECT_NEAR(alone, 2.0, 0.01);  // 2 GFLOP
  Machine one_core = m;
  one_core.cores_per_rank = 1;
  EXPECT_NEAR(predict(plan, {.machine = one_core, .ranks_per_host = 1}).seconds, 8.0, 0.04);
}

// 4 MB over a ring of 4 ranks: each sends 6 MB, and all of them share the host's 100 MB/s.
TEST(Predict, ACallInsideAHost) {
  const Machine m = machine();
  const Prediction p = predict(plan_of(4), {.machine = m, .ranks_per_host = 4});
  EXPECT_NEAR(p.links.host_bytes, 6 * kMega, 1);
  EXPECT_EQ(p.links.network_bytes, 0);
  EXPECT_NEAR(p.time.exposed_s, 0.24, 1e-6);
  Machine own_links = m;
  own_links.host.shared = false;
  EXPECT_NEAR(predict(plan_of(4), {.machine = own_links, .ranks_per_host = 4}).time.exposed_s, 0.06,
              1e-6);
}

// Two hosts of two ranks: 4 MB inside, then each host sends 4 MB over 10 MB/s.
TEST(Predict, ACallBetweenHosts) {
  const Machine m = machine();
  const Prediction p = predict(plan_of(4), {.machine = m, .ranks_per_host = 2});
  EXPECT_NEAR(p.links.host_bytes, 4 * kMega, 1);
  EXPECT_NEAR(p.links.network_bytes, 4 * kMega, 1);
  EXPECT_NEAR(p.time.exposed_s, 0.4, 1e-6);
}

TEST(Predict, ARingOverAllRanksSendsMoreBetweenHosts) {
  Machine m = machine();
  m.network.ring = true;
  const Prediction p = predict(plan_of(4), {.machine = m, .ranks_per_host = 2});
  EXPECT_NEAR(p.links.network_bytes, 6 * kMega, 1);
  EXPECT_NEAR(p.time.exposed_s, 0.6, 1e-6);
}

// A call and 2 s of products at once: what the call takes of a core is lost, the more the fewer
// cores a rank has.
TEST(Predict, CallsTakeTimeFromComputationOfTheirRank) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {1000, 1000});
  const ir::Attrs attrs{{"group", "dp"}, {"op", "sum"}};
  const ir::Results call =
      b.op("all_reduce_start", {{"xs", std::vector{x}}}, attrs, {{"out", ir::Names{"pending"}}});
  const ir::Var y = nn::fc(x, {.size = 1000, .bias = false});
  b.op("all_reduce_wait", {{"xs", std::vector{b.var("pending")}}, {"ticket", call["ticket"]}},
       attrs, {{"out", ir::Names{"all"}}});
  runtime::PlanOptions options;
  options.mesh = Mesh({{"dp", 2}}, 0);
  const runtime::PlannedProgram plan =
      runtime::plan_program(main, {{"x", {f32, {1000, 1000}}}}, {y.name(), "all"}, options);
  const auto seconds = [&](const Machine& m, int per_host) {
    return predict(plan, {.machine = m, .ranks_per_host = per_host}).seconds;
  };
  Machine m = machine();  // the call takes 0.08 s inside of the host, 0.4 s between hosts
  m.cores = 2;
  m.f32_flops = 2e9;
  EXPECT_NEAR(seconds(m, 2), 2, 0.01);
  m.host.overlap = 0.25;
  EXPECT_NEAR(seconds(m, 2), 2 + 0.75 * 0.08, 0.01);
  EXPECT_NEAR(seconds(m, 1), 1, 0.01);  // another link
  m.overlap = 0.5;
  EXPECT_NEAR(seconds(m, 1), 1 + 0.5 / 2 * 0.4, 0.01);  // of one of two cores
}

// An update of rows reads and writes whole cache lines of the table, and the average of the rows of
// all workers is computed by whoever waits for them.
TEST(Predict, RowsOfATableCostByTheirNumber) {
  const auto seconds = [](int64_t ids, int workers, const std::string& label) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var rows =
        nn::embedding(b.data("ids", i64, {-1, 1}), {.rows = 1000, .dim = 1, .sparse = true});
    const ir::Var loss = nn::mean(rows);
    strategies::ResolvedStrategies resolved(
        workers > 1 ? std::vector<strategies::Request>{{"data_parallel"}}
                    : std::vector<strategies::Request>{},
        {.mesh = Mesh({{"dp", workers}}, 0)});
    optim::Sgd sgd({.lr = 0.1});
    strategies::minimize(
        {main, startup}, resolved, [&] { (void)sgd.backward(loss); },
        [&] { sgd.apply_gradients(autograd::trained(b)); });
    runtime::PlanOptions options;
    options.mesh = Mesh({{"dp", workers}}, 0);
    Machine m = machine();
    m.memory_rate = 1e9;
    const Prediction p =
        predict(runtime::plan_program(main, {{"ids", {i64, {ids, 1}}}}, {loss.name()}, options),
                {.machine = m, .ranks_per_host = workers});
    double sum = 0;
    for (const Span& span : p.timeline.spans)
      if (span.lane == "compute" && span.name == label) sum += span.end - span.start;
    return sum;
  };
  const double one = seconds(1000, 1, "sgd");
  EXPECT_GT(one, 1000 * 2 * 64 / 1e9);
  EXPECT_NEAR(seconds(3000, 1, "sgd"), 3 * one, 1e-9);
  // Twice the rows, half of the cores.
  EXPECT_NEAR(seconds(1000, 2, "sgd"), 4 * one, 1e-9);
  EXPECT_GT(seconds(1000, 2, "all_gather_rows_wait"), 0);
}

TEST(Predict, TensorsOfACallCostTheProgramTime) {
  Machine m = machine();
  const double without = predict(plan_of(2), {.machine = m, .ranks_per_host = 2}).time.compute_s;
  m.host.tensor_s = 0.25;
  const double with = predict(plan_of(2), {.machine = m, .ranks_per_host = 2}).time.compute_s;
  EXPECT_NEAR(with - without, 0.25, 1e-9);
}

TEST(Predict, LatencyGrowsWithTheLogarithmOfTheRanks) {
  Machine m = machine();
  m.network.latency_s = 0.5;
  const double eight = predict(plan_of(8), {.machine = m, .ranks_per_host = 1}).time.exposed_s;
  const double two = predict(plan_of(2), {.machine = m, .ranks_per_host = 1}).time.exposed_s;
  EXPECT_NEAR(eight - two, 2 * (3 - 1) * 0.5 + 4 * kMega * (1.75 - 1) / (10 * kMega), 1e-6);
}

TEST(Predict, MeasuredOpsCountMoreThanRates) {
  const runtime::PlannedProgram plan = plan_of(1);
  Samples samples;
  for (const runtime::Step& step : plan.steps) samples.add(plan, step, 0.125);
  Machine m = machine();
  m.ops = samples.take();
  EXPECT_NEAR(predict(plan, {.machine = m, .ranks_per_host = 1}).seconds, 0.125, 1e-9);
}

// What one core of a busy host takes is measured by itself: two ranks on four cores lie between.
TEST(Predict, OpsOfOneCoreAreTakenForRanksOfOneCore) {
  const runtime::PlannedProgram plan = plan_of(1);
  Samples by_all, by_one(1);
  for (const runtime::Step& step : plan.steps) {
    by_all.add(plan, step, 0.125);
    by_one.add(plan, step, 0.32);
  }
  Machine m = machine();
  m.ops = by_all.take();
  const auto seconds = [&](int ranks) {
    double sum = 0;
    for (const runtime::Step& step : plan.steps)
      if (step.label == "fc") sum += op_seconds(plan, step, m, ranks);
    return sum;
  };
  EXPECT_NEAR(seconds(4), 0.5, 1e-9);  // by the cores alone
  for (const OpSample& s : by_one.take()) m.ops.push_back(s);
  EXPECT_NEAR(seconds(1), 0.125, 1e-9);
  EXPECT_NEAR(seconds(2), 0.2, 1e-9);
  EXPECT_NEAR(seconds(4), 0.32, 1e-9);
  EXPECT_NEAR(seconds(8), 0.64, 1e-9);  // two ranks take turns on a core
  m.cores_per_rank = 1;
  EXPECT_NEAR(seconds(1), 0.32, 1e-9);
}

TEST(Predict, TheSameImplementationTellsMoreThanTheSameShape) {
  const runtime::PlannedProgram plan = plan_of(1);
  const auto fc =
      std::ranges::find(plan.steps, "fc", [](const runtime::Step& s) { return s.label; });
  ASSERT_NE(fc, plan.steps.end());
  const std::string kernel(fc->kernel->implementation());
  ASSERT_FALSE(kernel.empty());
  Machine m = machine();
  const auto sample = [&](double part, double seconds, const std::string& by) {
    return OpSample{"fc", f32, fc->cost.flops * part, fc->cost.bytes * part, seconds, by};
  };
  m.ops = {sample(1, 9, "another"), sample(0.5, 1, kernel)};
  EXPECT_NEAR(op_seconds(plan, *fc, m, 1), 2, 1e-9);
  m.ops = {sample(1, 9, "another")};
  EXPECT_NEAR(op_seconds(plan, *fc, m, 1), 9, 1e-9);
}

// What is half as large and what is twice as large tell the same about what lies between.
TEST(Predict, ShapesBetweenMeasuredOnesAreInterpolated) {
  const runtime::PlannedProgram plan = plan_of(1);
  const auto fc =
      std::ranges::find(plan.steps, "fc", [](const runtime::Step& s) { return s.label; });
  ASSERT_NE(fc, plan.steps.end());
  Machine m = machine();
  const auto sample = [&](double part, double slower) {
    return OpSample{"fc", f32, fc->cost.flops * part, fc->cost.bytes * part, 2 * part * slower};
  };
  m.ops = {sample(0.5, 3), sample(2, 5)};  // of the 2 s that the rates say
  EXPECT_NEAR(op_seconds(plan, *fc, m, 1), 2 * 4, 1e-9);
  m.ops.push_back(sample(1, 1));
  EXPECT_NEAR(op_seconds(plan, *fc, m, 1), 2, 0.01);
}

TEST(Predict, AnotherTypeTellsMoreThanRates) {
  const runtime::PlannedProgram plan = plan_of(1);
  const auto fc =
      std::ranges::find(plan.steps, "fc", [](const runtime::Step& s) { return s.label; });
  ASSERT_NE(fc, plan.steps.end());
  Machine m = machine();
  m.ops = {{"fc", bf16, fc->cost.flops, fc->cost.bytes, 7}};
  EXPECT_NEAR(op_seconds(plan, *fc, m, 1), 7, 1e-9);
}

// Ops of a class are not equally fast: the mean keeps what they take together.
TEST(Predict, ClassesTakeTheMeanOfTheirOps) {
  const runtime::PlannedProgram first = plan_of(1), second = plan_of(1);
  Samples samples;
  for (const double noise : {0.0, 0.001, 5.0}) {
    samples.add(first, first.steps.front(), 0.1 + noise);
    samples.add(second, second.steps.front(), 0.5 + noise);
  }
  ASSERT_EQ(samples.take().size(), 1U);
  EXPECT_DOUBLE_EQ(samples.take()[0].seconds, 0.301);
}

TEST(Predict, ClassesTakeTheMedian) {
  const runtime::PlannedProgram plan = plan_of(1);
  const runtime::Step& step = plan.steps.front();
  Samples samples;
  for (const double seconds : {0.1, 0.2, 9.0}) samples.add(plan, step, seconds);
  ASSERT_EQ(samples.take().size(), 1U);
  EXPECT_DOUBLE_EQ(samples.take()[0].seconds, 0.2);
  EXPECT_DOUBLE_EQ(samples.take()[0].flops, step.cost.flops);
}

TEST(Predict, AReportSaysWhatDoesNotFit) {
  Machine m = machine();
  const Prediction p = predict(plan_of(4), {.machine = m, .ranks_per_host = 4});
  const Mesh mesh({{"dp", 4}}, 0);
  const std::string good = report({{"worker", 4, p}}, mesh, m, 4);
  for (const char* part : {"job: 4 workers, dp 4; 1 host of 4 ranks", "parameters", "activations",
                           "exposed comm", "bubbles"})
    EXPECT_TRUE(contains(good, part));
  EXPECT_FALSE(contains(good, "does not fit"));
  m.memory_bytes = 1 << 20;
  EXPECT_TRUE(
      contains(report({{"worker", 4, p}}, mesh, m, 4), "does not fit: the ranks of a host"));
}

// Two stages, each with a product for each of `count` micro-batches; the first sends its results.
runtime::PlannedProgram stage_of(int stage, int count) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {100, 1000});
  ir::Names results;
  for (int i = 0; i < count; ++i) {
    ir::Var in = x;
    const ir::Attrs attrs{{"group", "pp"}, {"peer", 1 - stage}};
    if (stage == 1) in = b.op("recv", {{"like", x}}, attrs, {{"out", ir::Names{str("in", i)}}});
    const ir::Var y = nn::fc(in, {.size = 1000, .bias = false});
    results.push_back(y.name());
    if (stage == 0) b.op("send", {{"xs", std::vector{y}}}, attrs);
  }
  runtime::PlanOptions options;
  options.mesh = Mesh({{"pp", 2}}, stage);
  return runtime::plan_program(main, {{"x", {f32, {100, 1000}}}}, results, options);
}

// The second stage waits for the first micro-batch, and from then on both compute.
TEST(Predict, StagesWaitForMessages) {
  Machine m = machine();
  m.host = {.bytes_per_second = 1e12};
  const runtime::PlannedProgram first = stage_of(0, 4), second = stage_of(1, 4);
  const auto all = predict_stages({&first, &second}, {.machine = m, .ranks_per_host = 2});
  ASSERT_EQ(all.size(), 2u);
  const double product = all[0].time.compute_s / 4;
  EXPECT_NEAR(product, 0.4, 0.01);  // 0.2 GFLOP on half of the host
  EXPECT_NEAR(all[0].seconds, 5 * product, 0.02);
  EXPECT_NEAR(all[1].seconds, 5 * product, 0.02);
  EXPECT_NEAR(all[1].time.bubble_s + all[1].time.exposed_s, product, 0.02);
  EXPECT_EQ(all[0].timeline.ranks.size(), 2u);
}

}  // namespace
}  // namespace fleetx::predict
