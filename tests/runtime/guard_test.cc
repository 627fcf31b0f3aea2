// Ops that do not run in steps in which their guard is false.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>

#include "fleetx/ir/text.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/sanitized.h"
#include "tests/support/workers.h"

namespace fleetx::runtime {
namespace {

using testing::expect_close;
using testing::filled;

const Layout kTransposed{{1, 0}, {}};

Tensor flag(bool value) {
  Tensor t(boolean, {1});
  t.data<bool>()[0] = value;
  return t;
}

// Without passes that would change what the text says.
PlanOptions as_written() {
  return {.skip = {"fuse_elementwise", "fuse_fc", "fuse_optimizer", "update_early"}};
}

PlannedProgram plan_text(const std::string& text, const ir::Names& fetch, const Scope* scope) {
  const ir::Program program = ir::parse_text(text);
  FeedTypes feeds;
  for (const ir::VarInfo* v : program.vars())
    if (v->is_data) feeds.emplace_back(v->name, v->type);
  PlanOptions options = as_written();
  options.scope = scope;
  return plan_program(program, feeds, fetch, options);
}

// "softmax if go"
std::vector<std::string> steps_of(const PlannedProgram& plan) {
  std::vector<std::string> out;
  for (const Step& step : plan.steps)
    out.push_back(step.label + (step.guard == kNoGuard ? "" : " if " + plan.value(step.guard).var));
  return out;
}

struct Runner {
  explicit Runner(const std::string& text) : program(ir::parse_text(text)) {}
  std::vector<Tensor> run(const Feeds& feeds, const ir::Names& fetch) {
    return exe.run(program, scope, feeds, fetch);
  }
  ir::Program program;
  Scope scope;
  Executor exe{{.plan = as_written()}};
};

const char* const kCounts = R"(program
data go : bool[1]
data x : f32[4]
state s : f32[4]
var y : f32[4]

forward:
y = scale(x) {scale=2} if go
s = elementwise_add(s, y) if go
)";

TEST(Guard, ASkippedOpLeavesStateAsItWas) {
  Runner r(kCounts);
  r.scope.set("s", filled({4}, 1));
  const Tensor x = filled({4}, 3);
  float want = 1;
  for (const bool go : {false, true, true, false}) {
    if (go) want += 6;
    EXPECT_EQ(r.run({{"go", flag(go)}, {"x", x}}, {"s"})[0].data<float>()[3], want) << go;
  }
  EXPECT_EQ(r.exe.plans_made(), 1u);
}

TEST(Guard, StandsInTheTable) {
  Scope scope;
  const std::string table = plan_text(kCounts, {"s"}, nullptr).table();
  EXPECT_TRUE(testing::contains(table, "if 'go'"));
}

TEST(Guard, WhatIsComputedUnderItCannotBeFetched) {
  EXPECT_EQ(testing::error_of([] { (void)plan_text(kCounts, {"y"}, nullptr); }),
            "fetch 'y': it is computed only in steps in which 'go' is true; keep it in a "
            "persistable variable, and fetch that");
}

// A skipped writer would leave nothing there.
TEST(Guard, StateThatIsWrittenUnderItMustBeThere) {
  Runner r(R"(program
data go : bool[1]
data x : f32[4]
state s : f32[4]

forward:
s = scale(x) if go
)");
  EXPECT_TRUE(testing::contains(testing::error_of([&] {
                                  r.run({{"go", flag(true)}, {"x", filled({4}, 3)}}, {"s"});
                                }),
                                "scale: 's' is not in the scope yet"));
}

// ---- layouts ----

const char* const kGuardedReaderFirst = R"(program
data go : bool[1]
state s : f32[2,3]
state t : f32[2,3]
var a : f32[2,3]
var b : f32[2,3]

forward:
a = softmax(s) if go
t = elementwise_add(t, a) if go
b = softmax(s)
)";

const char* const kGuardedReaderLast = R"(program
data go : bool[1]
state s : f32[2,3]
state t : f32[2,3]
var a : f32[2,3]
var b : f32[2,3]

forward:
b = softmax(s)
a = softmax(s) if go
t = elementwise_add(t, a) if go
)";

TEST(Guard, ACopyMadeUnderItServesNobodyElse) {
  Scope scope;
  scope.replace("s", Tensor(f32, {2, 3}, kTransposed));
  EXPECT_EQ(steps_of(plan_text(kGuardedReaderFirst, {"b"}, &scope)),
            (std::vector<std::string>{"reorder if go", "softmax if go", "elementwise_add if go",
                                      "reorder", "softmax"}));
  EXPECT_EQ(
      steps_of(plan_text(kGuardedReaderLast, {"b"}, &scope)),
      (std::vector<std::string>{"reorder", "softmax", "softmax if go", "elementwise_add if go"}));
}

TEST(Guard, ResultsAreRightInAnyLayout) {
  const Tensor s = testing::random({2, 3});
  for (const char* text : {kGuardedReaderFirst, kGuardedReaderLast}) {
    Tensor want;
    for (const bool transposed : {false, true}) {
      Runner r(text);
      r.scope.replace("s", transposed ? s.to(kTransposed) : s.clone());
      r.scope.set("t", filled({2, 3}, 1));
      float sum = 6;
      for (const bool go : {false, true, false, true}) {
        sum += go ? 2.0f : 0.0f;  // two rows whose softmax adds up to one
        const auto out = r.run({{"go", flag(go)}}, {"b", "t"});
        if (!want.defined()) want = out[0];
        expect_close(out[0], want, 1e-7, "b");
        float got = 0;
        for (const float v : out[1].data<float>()) got += v;
        EXPECT_NEAR(got, sum, 1e-5) << text << go;
      }
    }
  }
}

TEST(Guard, AWriteBackIsSkippedToo) {
  const char* const text = R"(program
data go : bool[1]
data x : f32[2,3]
state s : f32[2,3]

forward:
s = softmax(x) if go
)";
  Scope scope;
  scope.replace("s", filled({2, 3}, 5).to(kTransposed));
  EXPECT_EQ(steps_of(plan_text(text, {}, &scope)),
            (std::vector<std::string>{"softmax if go", "reorder if go"}));
  Runner r(text);
  r.scope.replace("s", filled({2, 3}, 5).to(kTransposed));
  const Tensor x = filled({2, 3}, 1);
  expect_close(r.run({{"go", flag(false)}, {"x", x}}, {"s"})[0], filled({2, 3}, 5), 0, "kept");
  expect_close(r.run({{"go", flag(true)}, {"x", x}}, {"s"})[0], filled({2, 3}, 1.0f / 3), 1e-6,
               "written");
}

// ---- memory ----

TEST(Guard, MemoryIsTakenOverOnlyWhereNobodyNoticesASkip) {
  const char* const text = R"(program
data go : bool[1]
data x : f32[64]
state s : f32[64]
state u : f32[64]
var a : f32[64]
var b : f32[64]
var c : f32[64]
var d : f32[64]
var e : f32[64]

forward:
a = softmax(x)
b = relu(a) if go
s = elementwise_add(s, b) if go
c = scale(a) {scale=3}
d = softmax(x) if go
e = relu(d) if go
u = elementwise_add(u, e) if go
)";
  const PlannedProgram plan = plan_text(text, {"c"}, nullptr);
  const auto storage = [&](const char* var) {
    return std::ranges::find(plan.values, var, &Value::var)->storage;
  };
  EXPECT_NE(storage("b"), storage("a")) << "a is read again";
  EXPECT_EQ(storage("e"), storage("d")) << "both exist under the same guard only";
  Runner r(text);
  for (const char* name : {"s", "u"}) r.scope.set(name, filled({64}, 0));
  const Tensor x = testing::random({64});
  Tensor want;
  for (const bool go : {true, false, true}) {
    const Tensor c = r.run({{"go", flag(go)}, {"x", x}}, {"c"})[0];
    if (!want.defined()) want = c;
    expect_close(c, want, 0, "c");
  }
  expect_close(r.scope.get("s"), r.scope.get("u"), 0, "s and u");
}

// go is computed here, read once more by the op it guards, and needed until the last of them.
TEST(Guard, ItsValueIsKeptUpToTheLastOpUnderIt) {
  const char* const text = R"(program
data x : f32[64]
data limit : f32[1]
state s : f32[64]
state k : f32[1]
var one : f32[1]
var go : bool[1]
var not : bool[1]
var a : f32[64]
var b : f32[64]
var c : f32[64]

forward:
one = reduce_mean(x)
go = less_than(one, limit)
not = logical_not(go) if go
a = softmax(x)
b = scale(a) {scale=64}
c = scale(b) if go
s = elementwise_add(s, c) if go
)";
  const PlannedProgram plan = plan_text(text, {"b"}, nullptr);
  const auto value = std::ranges::find(plan.values, "go", &Value::var);
  EXPECT_GE(plan.storage(value->storage).block.last, static_cast<int>(plan.steps.size()) - 1);
  Runner r(text);
  r.scope.set("s", filled({64}, 0));
  r.scope.set("k", filled({1}, 0));
  const Tensor x = filled({64}, 1);
  float want = 0;
  for (const bool go : {true, false, true, true}) {
    want += go ? 1.0f : 0.0f;
    r.run({{"x", x}, {"limit", filled({1}, go ? 2.0f : 0.0f)}}, {"b"});
    EXPECT_NEAR(r.scope.get("s").data<float>()[63], want, 1e-6);
  }
}

// ---- observers, groups, cost ----

TEST(Guard, SkippedOpsAreNotProfiled) {
  ExecutorOptions options{.profile = true};
  options.plan = as_written();
  Executor exe(options);
  const ir::Program program = ir::parse_text(kCounts);
  Scope scope;
  scope.set("s", filled({4}, 1));
  for (const bool go : {true, false, false, true})
    exe.run(program, scope, {{"go", flag(go)}, {"x", filled({4}, 1)}});
  EXPECT_EQ(exe.profile().rows().at("forward scale").calls, 2);
}

TEST(Guard, RanksThatAgreeMaySkipACollective) {
  const char* const text = R"(program
data x : f32[5]
state k : i64[1]
state limit : i64[1]
state s : f32[5]
var go : bool[1]
var a : f32[5]
var t : i64[16]

forward:
go = less_than(k, limit)
a = scale(x)
[a], t = all_reduce_start([a], _) {group="dp", op="average"} if go
[a] = all_reduce_wait([a], t) {group="dp", op="average"} if go
s = elementwise_add(s, a) if go
k = increment(k)
)";
  testing::run_workers(2, [&](int rank, const testing::SharedGroups& groups) {
    ir::Program program = ir::parse_text(text);
    Scope scope;
    scope.set("s", filled({5}, 0));
    scope.set("k", Tensor::of<int64_t>({1}, {0}));
    scope.set("limit", Tensor::of<int64_t>({1}, {2}));
    PlanOptions options = as_written();
    options.groups = groups;
    Executor exe({.plan = options});
    for (int step = 0; step < 4; ++step)  // two of them
      exe.run(program, scope, {{"x", filled({5}, static_cast<float>(rank))}}, {});
    EXPECT_FLOAT_EQ(scope.get("s").data<float>()[4], 1.0f);
  });
}

TEST(Guard, AFalseOneCostsNextToNothing) {
  if (testing::kSanitized) GTEST_SKIP() << "sanitized code takes longer";
  constexpr int kOps = 2000;
  std::string text = "program\ndata go : bool[1]\nstate s : f32[1]\n\nforward:\n";
  for (int i = 0; i < kOps; ++i) text += "s = scale(s) {scale=0.5} if go\n";
  Runner r(text);
  r.scope.set("s", filled({1}, 1));
  const Feeds feeds{{"go", flag(false)}};
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < 50; ++i) {
    Plan& plan = r.exe.plan(r.program, r.scope, feeds, {});
    ASSERT_EQ(plan.steps().size(), static_cast<size_t>(kOps));
    const auto start = std::chrono::steady_clock::now();
    r.exe.run(plan);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / kOps);
  }
  std::cout << "a skipped op takes " << best << " ns\n";
  EXPECT_LT(best, 50);
  EXPECT_EQ(r.scope.get("s").data<float>()[0], 1.0f);
}

}  // namespace
}  // namespace fleetx::runtime
