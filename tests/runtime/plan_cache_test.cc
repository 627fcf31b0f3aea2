// Which plans an executor keeps, and what they share.
#include "fleetx/runtime/plan_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <numeric>

#include "fleetx/base/rng.h"
#include "fleetx/ir/text.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/sample_program.h"
#include "tests/support/sanitized.h"
#include "tests/support/workers.h"

namespace fleetx::runtime {
namespace {

Feeds batch_of(int64_t batch) {
  return {{"x", testing::random({batch, 4}, static_cast<uint64_t>(batch))},
          {"label", testing::random_ints({batch, 1}, 0, 3)}};
}

struct Cached : testing::SampleProgram {
  explicit Cached(size_t budget = default_plan_cache_bytes()) : exe({.plan_cache_bytes = budget}) {
    Executor().run(startup, scope);
  }
  std::vector<Tensor> run(int64_t batch, const ir::Names& fetch = {"loss"}) {
    return exe.run(main, scope, batch_of(batch), fetch);
  }
  // Of an executor that has seen nothing else.
  Tensor alone(int64_t batch, const std::string& fetch) {
    return Executor().run(main, scope, batch_of(batch), {fetch})[0];
  }
  size_t bytes_of_one() { return Executor().plan(main, scope, batch_of(1), {"loss"}).own_bytes(); }
  Scope scope;
  Executor exe;
};

double resident_mib() {
  std::ifstream in("/proc/self/statm");
  double total = 0, resident = 0;
  in >> total >> resident;
  return resident * 4096 / (1 << 20);
}

// y = relu(x) + x for batches of rows of 4,096 numbers: a plan of n rows needs 16 n KiB.
TEST(PlanCache, TwoHundredBatchSizesInBoundedMemory) {
  if (testing::kSanitized) GTEST_SKIP() << "the sanitizer keeps memory that was freed";
  const ir::Program program = ir::parse_text(R"(program
data x : f32[-1,4096]
var a : f32[-1,4096]
var b : f32[-1,4096]
var y : f32[-1]

forward:
a = softmax(x)
b = elementwise_add(a, x)
y = reduce_sum(b) {dim=[1]}
)");
  constexpr int kSizes = 200;
  std::vector<int64_t> order(kSizes);
  std::iota(order.begin(), order.end(), 1);
  for (size_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[Philox(3, 0).bits(i) % (i + 1)]);
  const size_t budget = size_t{2} << 20;
  Executor exe({.plan_cache_bytes = budget});
  Scope scope;
  const Tensor all = testing::random({kSizes, 4096});
  const double before = resident_mib();
  size_t largest = 0;
  for (const int64_t rows : order) {
    Tensor x(f32, {rows, 4096});
    std::copy_n(all.data<float>().data(), rows * 4096, x.data<float>().data());
    const Feeds feeds{{"x", x}};
    const Tensor y = exe.run(program, scope, feeds, {"y"})[0];
    largest = std::max(largest, exe.plan(program, scope, feeds, {"y"}).arena_bytes());
    for (const int64_t row : {int64_t{0}, rows - 1}) {
      double want = 1;  // the softmax of a row
      for (int64_t i = 0; i < 4096; ++i)
        want += static_cast<double>(all.data<float>()[static_cast<size_t>(row * 4096 + i)]);
      ASSERT_NEAR(y.data<float>()[static_cast<size_t>(row)], want, 1e-2) << rows << " rows";
    }
    ASSERT_LE(exe.plan_bytes(), budget + largest);
  }
  EXPECT_EQ(exe.plans_made(), static_cast<size_t>(kSizes));
  EXPECT_LT(exe.plans(), static_cast<size_t>(kSizes));
  // An arena for each would be 300 MiB.
  EXPECT_LT(resident_mib() - before, 60);
}

TEST(PlanCache, AFetchListThatIsASubsetReusesThePlan) {
  Cached c;
  const std::string logits = c.logits.name();
  const auto both = c.run(6, {"loss", logits});
  const size_t made = c.exe.plans_made();
  const auto swapped = c.run(6, {logits, "loss"});
  testing::expect_close(swapped[0], both[1], 0, "logits");
  testing::expect_close(swapped[1], both[0], 0, "loss");
  testing::expect_close(c.run(6, {logits})[0], both[1], 0, "logits alone");
  testing::expect_close(c.run(6, {"loss"})[0], both[0], 0, "loss alone");
  EXPECT_TRUE(c.run(6, {}).empty());
  EXPECT_EQ(c.exe.plans_made(), made);
  c.run(7, {"loss"});
  EXPECT_EQ(c.exe.plans_made(), made + 1) << "of another batch size";
}

TEST(PlanCache, APlanThatFetchesMoreReplacesTheOneThatFetchesLess) {
  Cached c;
  c.run(6, {"loss"});
  EXPECT_EQ(c.exe.plans(), 1u);
  c.run(6, {"loss", c.logits.name()});
  EXPECT_EQ(c.exe.plans(), 1u);
  c.run(6, {"loss"});
  EXPECT_EQ(c.exe.plans_made(), 2u);
}

TEST(PlanCache, ANameThatIsFetchedTwiceGivesTwoTensors) {
  Cached c;
  c.run(6, {"loss", c.logits.name()});
  auto twice = c.run(6, {"loss", "loss"});
  EXPECT_NE(twice[0].raw(), twice[1].raw());
  EXPECT_EQ(twice[0].item<float>(), twice[1].item<float>());
}

TEST(PlanCache, ForgetsWhatWasNotUsedForLongest) {
  Cached c(0);
  const size_t one = c.bytes_of_one();
  Executor exe({.plan_cache_bytes = 3 * one + one / 2});
  const auto makes_a_plan = [&](int64_t batch) {
    const size_t before = exe.plans_made();
    exe.run(c.main, c.scope, batch_of(batch), {"loss"});
    return exe.plans_made() > before;
  };
  for (const int64_t batch : {1, 2, 3}) EXPECT_TRUE(makes_a_plan(batch));
  EXPECT_FALSE(makes_a_plan(1));  // now 2 is the oldest
  EXPECT_TRUE(makes_a_plan(4));
  EXPECT_EQ(exe.plans(), 3u);
  for (const int64_t batch : {1, 3, 4}) EXPECT_FALSE(makes_a_plan(batch)) << batch;
  EXPECT_TRUE(makes_a_plan(2));
}

TEST(PlanCache, WithoutABudgetTheNewestPlanStays) {
  Cached c(0);
  for (const int64_t batch : {3, 5, 3, 5})
    testing::expect_close(c.run(batch)[0], c.alone(batch, "loss"), 0, "loss");
  EXPECT_EQ(c.exe.plans(), 1u);
  EXPECT_EQ(c.exe.plans_made(), 4u);
}

TEST(PlanCache, ResultsOutliveTheirPlan) {
  Cached c(0);
  const std::string logits = c.logits.name();
  const Tensor kept = c.run(6, {logits})[0];
  const Tensor copy = kept.clone();
  for (const int64_t batch : {7, 8, 9, 6, 6}) c.run(batch, {logits});
  testing::expect_close(kept, copy, 0, "kept");
}

TEST(PlanCache, APlanRunsOnAfterTheArenaHasGrown) {
  Cached c;
  const Tensor small = c.run(2, {c.logits.name()})[0];
  const size_t before = c.exe.plan_bytes();
  c.run(4000, {c.logits.name()});
  EXPECT_GT(c.exe.plan_bytes(), before);
  testing::expect_close(c.run(2, {c.logits.name()})[0], small, 0, "after the move");
  EXPECT_EQ(c.exe.plans_made(), 2u);
}

TEST(PlanCache, OtherGroupsAreAnotherPlan) {
  const ir::Program program = ir::parse_text(R"(program
data x : f32[3]
var y : f32[-1]

forward:
[y] = all_gather([x]) {group="dp", ranks=1}
)");
  const auto use_new_groups = [] {
    auto groups = std::make_shared<comm::Groups>();
    groups->add("dp", std::move(comm::make_local(1)[0]));
    comm::set_process_groups(groups);
  };
  const auto old = comm::process_groups();
  Scope scope;
  Executor exe;
  const Tensor x = testing::random({3});
  for (size_t i = 1; i <= 2; ++i) {
    use_new_groups();
    for (int step = 0; step < 2; ++step)
      testing::expect_close(exe.run(program, scope, {{"x", x}}, {"y"})[0], x, 0, "y");
    EXPECT_EQ(exe.plans_made(), i);
  }
  comm::set_process_groups(old);
}

TEST(PlanCache, PlansShareBucketsOfTheSameForm) {
  const ir::Program program = ir::parse_text(R"(program
data x : f32[-1,5]
var g : f32[5]
var t : i64[16]

forward:
g = reduce_sum(x) {dim=[0]}
[g], t = all_reduce_start([g], _) {group="dp", op="average"}
[g] = all_reduce_wait([g], t) {group="dp", op="average"}
)");
  testing::run_workers(2, [&](int rank, const testing::SharedGroups& groups) {
    const ir::Program own = program;
    Scope scope;
    Executor exe({.plan = {.groups = groups}});
    std::set<const void*> buckets;
    for (const int64_t batch : {3, 4, 5, 3}) {
      const Feeds feeds{{"x", testing::filled({batch, 5}, static_cast<float>(rank + 1))}};
      const Tensor g = exe.run(own, scope, feeds, {"g"})[0];
      EXPECT_FLOAT_EQ(g.data<float>()[4], 1.5f * static_cast<float>(batch));
      Plan& plan = exe.plan(own, scope, feeds, {"g"});
      ASSERT_EQ(plan.buckets().size(), 1u);
      buckets.insert(plan.address(plan.planned().fetches[0].value));
    }
    EXPECT_EQ(exe.plans(), 3u);
    EXPECT_EQ(buckets.size(), 1u);
  });
}

TEST(PlanCache, BucketsOfOnePlanStayApart) {
  const ir::Program program = ir::parse_text(R"(program
data x : f32[-1,5]
var a : f32[5]
var b : f32[5]
var t : i64[16]
var u : i64[16]

forward:
a = reduce_sum(x) {dim=[0]}
b = reduce_max(x) {dim=[0]}
[a], t = all_reduce_start([a], _) {group="dp", op="average"}
[b], u = all_reduce_start([b], _) {group="dp", op="average"}
[a] = all_reduce_wait([a], t) {group="dp", op="average"}
[b] = all_reduce_wait([b], u) {group="dp", op="average"}
)");
  testing::run_workers(2, [&](int rank, const testing::SharedGroups& groups) {
    const ir::Program own = program;
    Scope scope;
    Executor exe({.plan = {.groups = groups}});
    for (const int64_t batch : {3, 4}) {
      const Feeds feeds{{"x", testing::filled({batch, 5}, static_cast<float>(rank + 1))}};
      const auto out = exe.run(own, scope, feeds, {"a", "b"});
      EXPECT_FLOAT_EQ(out[0].data<float>()[0], 1.5f * static_cast<float>(batch));
      EXPECT_FLOAT_EQ(out[1].data<float>()[0], 1.5f);
      EXPECT_EQ(exe.plan(own, scope, feeds, {"a", "b"}).buckets().size(), 2u);
    }
  });
}

TEST(PlanCache, ItsSizeCanBeSet) {
  EXPECT_GT(default_plan_cache_bytes(), size_t{64} << 20);
  setenv("FLEETX_PLAN_CACHE_MB", "3", 1);
  EXPECT_EQ(ExecutorOptions::from_env().plan_cache_bytes, size_t{3} << 20);
  setenv("FLEETX_PLAN_CACHE_MB", "-1", 1);
  EXPECT_EQ(testing::error_of([] { ExecutorOptions::from_env(); }),
            "FLEETX_PLAN_CACHE_MB is -1; must not be negative");
  unsetenv("FLEETX_PLAN_CACHE_MB");
}

// A second startup program makes its variables anew, whatever was there.
TEST(PlanCache, StartupReplacesVariablesOfAnotherShape) {
  Scope scope;
  Executor exe;
  const auto startup = [](int64_t n) {
    return ir::parse_text(str("program\nstate w : f32[", n, "]\n\nforward:\nw = fill() {shape=[", n,
                              "], value=2}\n"));
  };
  exe.run(startup(3), scope);
  exe.run(startup(5), scope);
  EXPECT_EQ(scope.get("w").shape(), (Shape{5}));
  EXPECT_EQ(scope.get("w").data<float>()[4], 2.0f);
}

}  // namespace
}  // namespace fleetx::runtime
