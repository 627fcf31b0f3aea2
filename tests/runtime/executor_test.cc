#include "fleetx/runtime/executor.h"

#include <gtest/gtest.h>

#include <immintrin.h>

#include <cmath>

#include "fleetx/autograd/backward.h"
#include "fleetx/base/threads.h"
#include "fleetx/ir/transform.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/sample_program.h"

namespace fleetx::runtime {
namespace {

using testing::error_of;
using testing::SampleProgram;

Feeds feeds_of(int64_t batch) {
  return {{"x", testing::random({batch, 4})}, {"label", testing::random_ints({batch, 1}, 0, 3)}};
}

struct Running : SampleProgram {
  Running() { exe.run(startup, scope); }
  Tensor run(const std::string& fetch, int64_t batch = 6) {
    return exe.run(main, scope, feeds_of(batch), {fetch})[0];
  }
  Scope scope;
  Executor exe;
};

TEST(Executor, RunsAndFetchesInTheOrderAsked) {
  Running r;
  const auto out = r.exe.run(r.main, r.scope, feeds_of(6), {r.logits.name(), "loss"});
  EXPECT_EQ(out[0].shape(), (Shape{6, 3}));
  EXPECT_EQ(out[1].shape(), (Shape{1}));
  EXPECT_GT(out[1].item<float>(), 0.0f);
}

TEST(Executor, PlansAreCachedPerFeedShape) {
  Running r;
  r.run("loss", 6);
  const size_t plans = r.exe.plans();
  r.run("loss", 6);
  EXPECT_EQ(r.exe.plans(), plans);
  EXPECT_EQ(r.run(r.logits.name(), 9).shape(), (Shape{9, 3}));
  EXPECT_EQ(r.exe.plans(), plans + 1);
}

TEST(Executor, AChangedProgramIsPlannedAnew) {
  Running r;
  r.run("loss");
  const ir::Var doubled = r.b.op("scale", {{"x", r.loss}}, {{"scale", 2.0}});
  EXPECT_FLOAT_EQ(r.run(doubled.name()).item<float>(), 2 * r.run("loss").item<float>());
}

TEST(Executor, AFetchedTensorIsTheCallersToKeep) {
  Running r;
  const Tensor kept = r.run(r.logits.name());
  const Tensor copy = kept.clone();
  r.scope.set("fc_1.b_0", testing::filled({3}, 5.0f));
  const Tensor other = r.run(r.logits.name());
  testing::expect_close(kept, copy, 0.0, "kept");
  EXPECT_NE(other.data<float>()[0], kept.data<float>()[0]);
}

TEST(Executor, ScopeValuesAreSeenByTheNextRun) {
  Running r;
  r.run("loss");
  for (const char* name : {"fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"})
    r.scope.set(name, Tensor(DType::kF32, r.scope.get(name).shape()));
  EXPECT_NEAR(r.run("loss").item<float>(), std::log(3.0f), 1e-6);  // three equal classes
}

TEST(Executor, BadRequestsAreNamed) {
  Running r;
  const Tensor x = testing::random({6, 4}), label = testing::random_ints({6, 1}, 0, 3);
  const auto run = [&](const Feeds& feeds, const ir::Names& fetch) {
    return error_of([&] { r.exe.run(r.main, r.scope, feeds, fetch); });
  };
  EXPECT_EQ(run({{"x", x}}, {"loss"}), "feed 'label' is missing: the program needs i64[-1,1]");
  EXPECT_EQ(run({{"x", x}, {"lable", label}}, {"loss"}),
            "feed 'lable': the program has no data variable of that name; did you mean 'label'? "
            "(it has: x, label)");
  EXPECT_EQ(run({{"x", testing::random({6, 5})}, {"label", label}}, {"loss"}),
            "feed 'x': the program declares f32[-1,4], got f32[6,5]");
  EXPECT_EQ(run({{"x", label}, {"label", label}}, {"loss"}),
            "feed 'x': the program declares f32[-1,4], got i64[6,1]");
  EXPECT_EQ(run({{"x", x}, {"label", label}}, {"los"}),
            "fetch 'los': the program has no such variable; did you mean 'loss'?");
  EXPECT_NE(run({{"x", x}, {"label", testing::random_ints({5, 1}, 0, 3)}}, {"loss"})
                .find("softmax_cross_entropy"),
            std::string::npos);
  Scope empty;
  EXPECT_NE(error_of([&] {
              r.exe.run(r.main, empty, {{"x", x}, {"label", label}}, {"loss"});
            }).find("'fc_0.w_0' is not in the scope yet: run the startup program first"),
            std::string::npos);
}

// Two startup programs that give one name to parameters of different shapes.
TEST(Executor, AStartupProgramReplacesVariablesOfOtherShapes) {
  const auto build = [](ir::Builder& b, int64_t width) {
    const ir::Var x = b.data("x", f32, {-1, width});
    return b.op("matmul", {{"x", x}, {"y", b.parameter({.name = "w", .shape = {width, 2}})}});
  };
  ir::Program main[2];
  Scope scope;
  Executor exe;
  for (const int round : {0, 1, 0}) {
    const auto width = static_cast<int64_t>(3 + round);
    ir::Program again, init;
    ir::Builder b(again, init);
    const ir::Var out = build(b, width);
    exe.run(init, scope);
    EXPECT_EQ(scope.get("w").shape(), (Shape{width, 2}));
    const Feeds feeds{{"x", testing::random({5, width})}};
    EXPECT_EQ(exe.run(again, scope, feeds, {out.name()})[0].shape(), (Shape{5, 2}));
    main[round] = again;
  }
  // A program that reads the variable does not replace it.
  const Feeds feeds{{"x", testing::random({5, 4})}};
  EXPECT_NE(error_of([&] {
              exe.run(main[1], scope, feeds, {main[1].ops().back().outputs[0][0]});
            }).find("'w' in the scope is f32[3,2], the program declares f32[4,2]"),
            std::string::npos);
}

TEST(Executor, UnneededOpsAndFeedsAreNotRun) {
  Running r;
  // The logits do not need the label.
  const auto out = r.exe.run(r.main, r.scope, {{"x", testing::random({2, 4})}}, {r.logits.name()});
  EXPECT_EQ(out[0].shape(), (Shape{2, 3}));
}

TEST(Executor, CheckFiniteNamesTheFirstOp) {
  SampleProgram s;
  Scope scope;
  ExecutorOptions options;
  options.check_finite = true;
  Executor exe(options);
  exe.run(s.startup, scope);
  Tensor bad = testing::filled({8, 3}, 0.0f);
  bad.data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  scope.set("fc_1.w_0", bad);
  const std::string message = error_of([&] { exe.run(s.main, scope, feeds_of(6), {"loss"}); });
  EXPECT_TRUE(message.starts_with("sample.cc:7: fc 'fc_1': produced NaN or Inf in 'fc_1.tmp_0'"))
      << message;
}

// Both inputs die here and either could lend its memory; they must stay apart.
TEST(Executor, AnOutputTakesOverOneInputOnly) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {4});
  const ir::Var two = b.op("softmax", {{"x", b.op("scale", {{"x", x}}, {{"scale", 2.0}})}});
  const ir::Var three = b.op("softmax", {{"x", b.op("scale", {{"x", x}}, {{"scale", 3.0}})}});
  b.op("elementwise_sub", {{"x", two}, {"y", three}}, {}, {{"out", "out"}});
  Scope scope;
  const Feeds feeds = {{"x", testing::random({4})}};
  ExecutorOptions apart;
  apart.plan.skip = {"inplace"};
  const Tensor want = Executor(apart).run(main, scope, feeds, {"out"})[0];
  testing::expect_close(Executor(ExecutorOptions{}).run(main, scope, feeds, {"out"})[0], want, 0,
                        "in place");
}

TEST(Executor, EverySkippedPhaseGivesTheSameResult) {
  SampleProgram s;
  const auto grads = autograd::append_backward(s.loss);
  const ir::Names fetch{"loss", grads[0].grad.name(), grads[3].grad.name()};
  std::vector<Tensor> first;
  for (const char* skip : {"", "layout", "inplace", "memory", "dce"}) {
    ExecutorOptions options;
    if (*skip) options.plan.skip = {skip};
    Executor exe(options);
    Scope scope;
    exe.run(s.startup, scope);
    const auto out = exe.run(s.main, scope, feeds_of(6), fetch);
    if (first.empty()) first = out;
    for (size_t i = 0; i < out.size(); ++i) testing::expect_close(out[i], first[i], 1e-6, skip);
  }
  ExecutorOptions options;
  options.plan.skip = {"no_such_pass"};
  EXPECT_THROW(
      {
        Executor exe(options);
        Scope scope;
        exe.run(s.startup, scope);
      },
      Error);
}

TEST(Executor, MainAndTestProgramsShareAScope) {
  Running r;
  const ir::Program test = ir::clone_for_test(r.main);
  const float loss = r.run("loss").item<float>();
  EXPECT_FLOAT_EQ(r.exe.run(test, r.scope, feeds_of(6), {"loss"})[0].item<float>(), loss);
}

TEST(Executor, ProfileAndTableTellWhatRan) {
  SampleProgram s;
  Scope scope;
  ExecutorOptions options;
  options.profile = true;
  Executor exe(options);
  exe.run(s.startup, scope);
  exe.run(s.main, scope, feeds_of(6), {"loss"});
  EXPECT_EQ(exe.profile().rows().at("forward fc").calls, 2);
  EXPECT_DOUBLE_EQ(exe.profile().rows().at("forward fc").flops, 2.0 * 6 * (4 * 8 + 8 * 3));
  const std::string table = exe.plan(s.main, scope, feeds_of(6), {"loss"}).table();
  EXPECT_NE(table.find("softmax_cross_entropy"), std::string::npos);
  EXPECT_NE(table.find("memory: peak"), std::string::npos);
}

TEST(Executor, FloatingPointSettingsOfTheCallerComeBack) {
  constexpr unsigned kControl = ~0x3fu;  // the rest are flags that any arithmetic raises
  const unsigned before = _mm_getcsr() & kControl;
  Running r;
  r.run("loss");
  EXPECT_EQ(_mm_getcsr() & kControl, before);
}

}  // namespace
}  // namespace fleetx::runtime
