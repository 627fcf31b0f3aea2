#include <gtest/gtest.h>

#include <algorithm>

#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/ops/collective_case.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/workers.h"

namespace fleetx::testing {
namespace {

CollectiveCase all_reduce(const std::string& op, const std::function<double(double, double)>& fn) {
  return {.op = "all_reduce",
          .attrs = {{"op", op}},
          .in_place = true,
          .reference = [fn](const Values& of, int) { return combine(of, fn); }};
}

TEST(AllReduce, Sum) { check_collective(all_reduce("sum", std::plus<double>())); }

TEST(AllReduce, Average) {
  CollectiveCase c = all_reduce("average", {});
  c.reference = [](const Values& of, int) {
    Value sum = combine(of, std::plus<double>());
    for (double& v : sum) v /= static_cast<double>(of.size());
    return sum;
  };
  c.dtypes = {f32, bf16, f16, f64};
  check_collective(c);
}

TEST(AllReduce, MaxMinAndProd) {
  for (CollectiveCase c : {all_reduce("max", [](double a, double b) { return std::max(a, b); }),
                           all_reduce("min", [](double a, double b) { return std::min(a, b); }),
                           all_reduce("prod", std::multiplies<double>())}) {
    c.gradient = false;
    check_collective(c);
  }
}

// Started in place, [a, c] are averages of what this rank computes.
struct Averages {
  ir::Program main, startup;

  Averages() {
    ir::Builder b(main, startup);
    const ir::Var x = b.data("x", f32, {3, 5});
    const ir::Var y = b.data("y", f32, {7});
    const ir::Var a = b.op("scale", {{"x", x}}, {{"scale", 2.0}}, {{"out", "a"}});
    const ir::Var c = b.op("scale", {{"x", y}}, {{"scale", 3.0}}, {{"out", "c"}});
    average(b, {a, c});
  }

  static void average(ir::Builder& b, const std::vector<ir::Var>& xs) {
    const ir::Attrs attrs{{"group", "dp"}, {"op", "average"}};
    ir::Names names;
    for (const ir::Var& x : xs) names.push_back(x.name());
    const auto started = b.op("all_reduce_start", {{"xs", xs}}, attrs, {{"out", names}});
    b.op("all_reduce_wait", {{"xs", xs}, {"ticket", started["ticket"]}}, attrs, {{"out", names}});
  }
};

TEST(AllReduce, StartedInPlaceWorksInABucketOfTheGroup) {
  const int workers = 3;
  Averages program;
  run_workers(workers, [&](int rank, const SharedGroups& groups) {
    const ir::Program main = program.main;
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups}});
    for (uint64_t step = 0; step < 3; ++step) {
      const auto salt = [&](int r) { return 10 * step + static_cast<uint64_t>(r); };
      const runtime::Feeds feeds{{"x", random({3, 5}, salt(rank))}, {"y", random({7}, salt(rank))}};
      const auto out = exe.run(main, scope, feeds, {"a", "c"});
      for (const size_t i : {0u, 1u}) {
        const Shape shape = i == 0 ? Shape{3, 5} : Shape{7};
        Tensor want = filled(shape, 0);
        for (int r = 0; r < workers; ++r)
          want = zip(want, random(shape, salt(r)), [&](float sum, float x) {
            return sum + x * (i == 0 ? 2.0f : 3.0f) / workers;
          });
        expect_close(out[i], want, 1e-6, "average");
      }
      const runtime::Plan& plan = exe.plan(main, scope, feeds, {"a", "c"});
      ASSERT_EQ(plan.buckets().size(), 1u);
      EXPECT_EQ(plan.buckets()[0].group, "dp");
      EXPECT_EQ(plan.buckets()[0].bytes, 64u + 64u + 64u);  // a, c, marks
      size_t in_bucket = 0;
      for (const runtime::Value& v : plan.values())
        in_bucket +=
            plan.storages()[static_cast<size_t>(v.storage)].region == runtime::Region::kBucket;
      EXPECT_EQ(in_bucket, 2u);  // nothing is copied there: it is the only memory of a and c
    }
  });
}

// What has memory of its own cannot be in a bucket; then each variable is reduced where it is.
TEST(AllReduce, StateIsReducedWhereItIs) {
  for (const bool mixed : {false, true}) {
    run_workers(2, [&](int rank, const SharedGroups& groups) {
      ir::Program main, startup;
      ir::Builder b(main, startup);
      std::vector<ir::Var> xs{b.state("s", f32, {16}), b.state("t", f32, {3})};
      if (mixed) xs.push_back(b.op("scale", {{"x", b.data("x", f32, {4})}}, {}, {{"out", "a"}}));
      Averages::average(b, xs);
      runtime::Scope scope;
      scope.set("s", filled({16}, static_cast<float>(rank)));
      scope.set("t", filled({3}, static_cast<float>(3 * rank)));
      runtime::Executor exe({.plan = {.groups = groups}});
      const runtime::Feeds feeds =
          mixed ? runtime::Feeds{{"x", filled({4}, static_cast<float>(5 * rank))}}
                : runtime::Feeds{};
      ir::Names fetch{"s", "t"};
      if (mixed) fetch.emplace_back("a");
      const auto out = exe.run(main, scope, feeds, fetch);
      EXPECT_EQ(out[0].data<float>()[15], 0.5f);
      EXPECT_EQ(out[1].data<float>()[2], 1.5f);
      if (mixed) {
        EXPECT_EQ(out[2].data<float>()[3], 2.5f);
      }
      EXPECT_TRUE(exe.plan(main, scope, feeds, fetch).buckets().empty());
    });
  }
}

// A second op on a part of a bucket must not take the rest of it for its tail.
TEST(AllReduce, APartOfABucketIsReducedOnItsOwn) {
  run_workers(2, [&](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var x = b.data("x", f32, {16});
    const ir::Var a = b.op("scale", {{"x", x}}, {}, {{"out", "a"}});
    const ir::Var c = b.op("scale", {{"x", x}}, {{"scale", 3.0}}, {{"out", "c"}});
    Averages::average(b, {a, c});
    Averages::average(b, {a});
    runtime::Scope scope;
    const auto out =
        runtime::Executor({.plan = {.groups = groups}})
            .run(main, scope, {{"x", filled({16}, static_cast<float>(rank))}}, {"a", "c"});
    expect_close(out[0], filled({16}, 0.5f), 0, "a");
    expect_close(out[1], filled({16}, 1.5f), 0, "c");
  });
}

TEST(AllReduce, RanksWithOtherShapesAreAnError) {
  for (const bool in_bucket : {true, false}) {
    run_workers(2, [&](int rank, const SharedGroups& groups) {
      ir::Program main, startup;
      ir::Builder b(main, startup);
      // The same number of bytes, so that only the marks differ.
      const Shape shape = rank == 0 ? Shape{4, 8} : Shape{8, 4};
      runtime::Scope scope;
      ir::Var a = b.op("scale", {{"x", b.data("x", f32, shape)}}, {}, {{"out", "a"}});
      if (!in_bucket) {
        a = b.state("s", f32, shape);
        scope.set("s", random(shape));
      }
      Averages::average(b, {a});
      expect_error(Error::Kind::kInvalidArgument, {"all_reduce_wait", "'dp'", "layouts"}, [&] {
        runtime::Executor({.plan = {.groups = groups}})
            .run(main, scope, {{"x", random(shape)}}, {"a"});
      });
    });
  }
}

TEST(AllReduce, MaxHasNoGradient) {
  CollectiveCase c = all_reduce("max", {});
  expect_error(Error::Kind::kInvalidArgument, {"all_reduce", "\"max\"", "'dp'", "stop_gradient"},
               [&] { check_gradient(c, 1); });
}

}  // namespace
}  // namespace fleetx::testing
