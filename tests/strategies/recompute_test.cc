#include <gtest/gtest.h>

#include "fleetx/autograd/backward.h"
#include "fleetx/ir/text.h"
#include "fleetx/models/bert.h"
#include "fleetx/nn/nn.h"
#include "fleetx/runtime/planner.h"
#include "tests/strategies/parallel_training.h"
#include "tests/support/expect_error.h"

namespace fleetx::strategies::recompute_test {
namespace {

// Backward needs a (kept) and b (given up).
constexpr const char* kText = R"(program
data x : f32[-1,4]
state s : f32[4]
var loss : f32[1]
var dloss : f32[1]
var a : f32[-1,4]
var b : f32[-1,4]
var c : f32[-1,4]
var dc : f32[-1,4]
var db : f32[-1,4]
var da : f32[-1,4]

forward:
a = scale(x) {scale=2.0}
b = scale(a) {scale=3.0}
c = elementwise_mul(b, a)
loss = mean(c)

backward:
dloss = fill() {shape=[1], value=1.0}
dc = fill_like(c) {value=1.0}
db = elementwise_mul(dc, a)
da = elementwise_mul(dc, b)

training:
loss(loss, dloss)
)";

ir::Program apply(const ir::Strings& checkpoints, const std::string& text = kText) {
  ir::Program main = ir::parse_text(text), startup;
  ResolvedStrategies resolved({{"recompute", {{"checkpoints", checkpoints}}}}, {});
  resolved.validate(main);
  resolved.apply(Phase::kGradients, {main, startup});
  return main;
}

TEST(Recompute, BackwardReadsCopiesOfWhatIsNotKept) {
  const ir::Program main = apply({"a", "c"});
  std::vector<std::string> backward;
  for (const ir::Op& op : main.ops())
    if (op.role == ir::Role::kBackward) backward.push_back(ir::to_text(op));
  EXPECT_EQ(backward, (std::vector<std::string>{
                          "dloss = fill() {shape=[1], value=1.0}", "dc = fill_like(c) {value=1.0}",
                          "db = elementwise_mul(dc, a)", "b@RECOMPUTE = scale(a) {scale=3.0}",
                          "da = elementwise_mul(dc, b@RECOMPUTE)"}));
}

// Backward begins there: computing it again would save nothing.
TEST(Recompute, WhatComesAfterTheLastCheckpointIsKept) {
  const ir::Program main = apply({"a"});
  for (const ir::Op& op : main.ops())
    for (const ir::Names& names : op.outputs)
      for (const std::string& name : names)
        EXPECT_EQ(name.find("@RECOMPUTE"), std::string::npos) << ir::to_text(op);
}

TEST(Recompute, RefusesWhatMakesNoSense) {
  const std::string missing = testing::error_of([] { apply({"no_such_variable"}); });
  for (const char* part : {"recompute_configs.checkpoints has 'no_such_variable'",
                           "name variables that forward computes, or none"})
    EXPECT_TRUE(testing::contains(missing, part)) << missing;
  for (const char* kept : {"x", "s"})
    EXPECT_TRUE(testing::contains(testing::error_of([&] { apply({kept}); }),
                                  "stays in memory anyway; name variables that forward computes"));
  EXPECT_THROW(apply({"a"}, "program\ndata x : f32[4]\nvar a : f32[4]\n\nforward:\na = scale(x)\n"),
               Error);
}

struct Result {
  std::vector<float> losses;
  std::vector<Tensor> state;  // running statistics and parameters at the end
  size_t arena_bytes = 0;
  size_t copies = 0;  // values that are computed again
};

enum class Keep { kAll, kNamed, kChosen };

// Sixteen layers with what is hard to compute twice: random numbers and running statistics. A mask
// is made once and read by all of them.
Result train(Keep keep, const ir::Attrs& options = {}, int64_t batch = -1) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {batch, 32});
  const ir::Var mask = b.op("sigmoid", {{"x", nn::fc(x, {.size = 1})}});
  ir::Strings checkpoints{mask.name()};
  ir::Var h = x;
  for (int i = 0; i < 16; ++i) {
    h = nn::batch_norm(nn::fc(h, {.size = 32, .act = "tanh"}), {.act = "relu"});
    h = b.op("elementwise_mul", {{"x", nn::dropout(h, {.p = 0.2})}, {"y", mask}});
    if (i % 4 == 3) checkpoints.push_back(h.name());
  }
  const ir::Var loss = b.op("mean", {{"x", b.op("square", {{"x", h}})}}, {}, {{"out", "loss"}});
  const auto grads = autograd::append_backward(loss);
  {
    const auto guard = b.in_role(ir::Role::kUpdate);
    const ir::Var lr = b.state("lr", f32, {1}, 0.1);
    for (const auto& [param, grad] : grads)
      b.op("sgd", {{"param", std::vector{param}}, {"grad", std::vector{grad}}, {"lr", lr}}, {},
           {{"param_out", ir::Names{param.name()}}});
    b.op("increment", {{"x", b.step()}}, {}, {{"out", b.step()}});
  }
  if (keep != Keep::kAll) {
    ir::Attrs all = options;
    if (keep == Keep::kNamed) all.emplace("checkpoints", checkpoints);
    ResolvedStrategies resolved({{"recompute", all}}, {});
    resolved.validate(main);
    resolved.apply(Phase::kGradients, {main, startup});
  }

  runtime::Scope scope;
  runtime::Executor exe(runtime::ExecutorOptions{});
  exe.run(startup, scope);
  const runtime::Feeds feeds = {{"x", testing::random({batch > 0 ? batch : 512, 32})}};
  Result t;
  for (int step = 0; step < 4; ++step)
    t.losses.push_back(exe.run(main, scope, feeds, {"loss"})[0].item<float>());
  for (const std::string& name : scope.names()) t.state.push_back(scope.get(name));
  t.arena_bytes = exe.plan(main, scope, feeds, {"loss"}).arena_bytes();
  for (const ir::VarInfo* v : main.vars())
    t.copies += v->name.ends_with(ir::kRecomputeSuffix) ? 1 : 0;
  return t;
}

void expect_same_bits(const Result& got, const Result& want) {
  EXPECT_EQ(got.losses, want.losses);
  ASSERT_EQ(got.state.size(), want.state.size());
  for (size_t i = 0; i < got.state.size(); ++i)
    testing::expect_close(got.state[i], want.state[i], 0, "state");
}

double share(const Result& a, const Result& b) {
  return static_cast<double>(a.arena_bytes) / static_cast<double>(b.arena_bytes);
}

TEST(Recompute, SameBitsInLessMemory) {
  const Result all = train(Keep::kAll), named = train(Keep::kNamed);
  EXPECT_NE(all.losses[0], all.losses[3]);
  expect_same_bits(named, all);
  EXPECT_LT(share(named, all), 0.7);
}

TEST(Recompute, ChoosesCheckpoints) {
  const Result all = train(Keep::kAll), named = train(Keep::kNamed);
  for (const int64_t batch : {-1, 512}) {
    const Result chosen = train(Keep::kChosen, {}, batch);
    expect_same_bits(chosen, all);
    EXPECT_LT(share(chosen, all), 0.6);
    EXPECT_LT(share(chosen, named), 1.1);  // about as good as by hand
    EXPECT_LE(chosen.copies, named.copies + 16);
  }
}

TEST(Recompute, ABudgetIsMetAtTheLeastCost) {
  const int64_t batch = 8192;  // what backward waits for is some MiB
  const auto with = [&](int64_t budget) {
    return train(Keep::kChosen, {{"budget_MB", budget}}, batch).copies;
  };
  EXPECT_EQ(with(1000), 0u);  // all of it fits
  const size_t little = with(40), more = with(25);
  EXPECT_GT(little, 0u);
  EXPECT_GT(more, little);
  testing::expect_error(Error::Kind::kInvalidArgument, {"budget_MB", "at least", "without"},
                        [&] { with(1); });
  testing::expect_error(Error::Kind::kInvalidArgument, {"budget_MB", "-1", "static.data"}, [] {
    train(Keep::kChosen, {{"budget_MB", 10}});
  });
  testing::expect_error(Error::Kind::kInvalidArgument, {"budget_MB", "checkpoints"}, [] {
    train(Keep::kNamed, {{"budget_MB", 10}}, 512);
  });
}

// Of a real network: what a plan needs besides parameters and their state, and its arithmetic.
TEST(Recompute, BertBaseInAThirdOfTheMemory) {
  const int64_t batch = 32, length = 128, masked = batch * 20;
  const auto plan = [&](const std::vector<Request>& requests, int64_t declared) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const int64_t n = declared < 0 ? -1 : masked;
    const ir::Var loss =
        models::bert_pretraining({.words = b.data("words", i64, {declared, length}),
                                  .sentences = b.data("sentences", i64, {declared, length})},
                                 {.positions = b.data("positions", i64, {n}),
                                  .words = b.data("targets", i64, {n, 1}),
                                  .follows = b.data("follows", i64, {declared, 1})},
                                 {})
            .loss;
    optim::Adam adam({.lr = 1e-4});
    testing::minimize_for_worker(loss, adam, requests, 0, 1);
    return runtime::plan_program(main,
                                 {{"words", {i64, {batch, length}}},
                                  {"sentences", {i64, {batch, length}}},
                                  {"positions", {i64, {masked}}},
                                  {"targets", {i64, {masked, 1}}},
                                  {"follows", {i64, {batch, 1}}}},
                                 {loss.name()}, {});
  };
  const runtime::PlannedProgram all = plan({}, batch);
  const auto expect_less = [&](const runtime::PlannedProgram& less, double bytes, double flops) {
    const auto share = [](double a, double b) { return a / b; };
    const double memory =
        share(static_cast<double>(less.arena_bytes), static_cast<double>(all.arena_bytes));
    const double work = share(less.flops(), all.flops());
    EXPECT_LT(memory, bytes) << less.arena_bytes << " of " << all.arena_bytes;
    EXPECT_LT(work, flops);
  };
  expect_less(plan({{"recompute"}}, batch), 0.35, 1.27);
  expect_less(plan({{"recompute"}}, -1), 0.35, 1.27);
  expect_less(plan({{"recompute", {{"budget_MB", 1200}}}}, batch), 0.7, 1.2);
}

}  // namespace
}  // namespace fleetx::strategies::recompute_test
