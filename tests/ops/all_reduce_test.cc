#include <gtest/gtest.h>

#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/alone.h"
#include "tests/support/op_case.h"
#include "tests/support/workers.h"

namespace fleetx::testing {
namespace {

// Of one rank the average is what it was. (The ticket is a number that says nothing.)
const AddCases start_cases("all_reduce_start", [](Cases& c) {
  c.add({.label = "alone",
         .inputs = {OpInput("xs", {random({3, 4}, 1), random({5}, 2)}).state()},
         .attrs = {{"group", "alone"}},
         .updates = {{"out", "xs"}},
         .reference = [](const Tensors& in) -> Tensors {
           return {in[0], in[1], Tensor()};
         },
         .gradient = false});
});

const AddCases wait_cases("all_reduce_wait", [](Cases& c) {
  Tensor nothing(i64, {1});
  nothing.data<int64_t>()[0] = -1;
  c.add({.label = "alone",
         .inputs = {OpInput("xs", {random({3, 4}, 1), random({5}, 2)}).state(),
                    OpInput("ticket", nothing)},
         .attrs = {{"group", "alone"}},
         .updates = {{"out", "xs"}},
         .reference = [](const Tensors& in) -> Tensors {
           return {in[0], in[1]};
         },
         .gradient = false});
});

// a and b, computed from what is fed (so that they can be born in a bucket), averaged.
struct Averages {
  ir::Program main, startup;

  explicit Averages(DType dtype = f32) {
    ir::Builder b(main, startup);
    const ir::Var x = b.data("x", dtype, {3, 5});
    const ir::Var y = b.data("y", dtype, {7});
    const ir::Var a = b.op("scale", {{"x", x}}, {{"scale", 2.0}}, {{"out", "a"}});
    const ir::Var c = b.op("scale", {{"x", y}}, {{"scale", 3.0}}, {{"out", "c"}});
    const ir::Names names{"a", "c"};
    const auto started =
        b.op("all_reduce_start", {{"xs", std::vector{a, c}}}, {{"group", "dp"}}, {{"out", names}});
    b.op("all_reduce_wait", {{"xs", std::vector{a, c}}, {"ticket", started["ticket"]}},
         {{"group", "dp"}}, {{"out", names}});
  }
};

TEST(AllReduce, AveragesInABucketOfTheGroup) {
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
      EXPECT_EQ(plan.buckets()[0].bytes, 64u + 64u + 64u);  // a, c, marks
      size_t in_bucket = 0;
      for (const runtime::Value& v : plan.values())
        in_bucket +=
            plan.storages()[static_cast<size_t>(v.storage)].region == runtime::Region::kBucket;
      EXPECT_EQ(in_bucket, 2u);  // nothing is copied there: it is the only memory of a and c
    }
  });
}

TEST(AllReduce, OtherTypesAreReducedOneByOne) {
  Averages program(f64);
  run_workers(2, [&](int rank, const SharedGroups& groups) {
    const ir::Program main = program.main;
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups}});
    Tensor x(f64, {3, 5}), y(f64, {7});
    for (double& value : x.data<double>()) value = rank + 1.0;
    for (double& value : y.data<double>()) value = rank + 1.0;
    const auto out = exe.run(main, scope, {{"x", x}, {"y", y}}, {"a", "c"});
    EXPECT_EQ(out[0].data<double>()[14], 3.0);
    EXPECT_EQ(out[1].data<double>()[6], 4.5);
  });
}

// What has memory of its own cannot be in a bucket, nor have marks behind it.
TEST(AllReduce, AveragesStateWhereItIs) {
  run_workers(2, [&](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var s = b.state("s", f32, {16});
    const auto started = b.op("all_reduce_start", {{"xs", std::vector{s}}}, {{"group", "dp"}},
                              {{"out", ir::Names{"s"}}});
    b.op("all_reduce_wait", {{"xs", std::vector{s}}, {"ticket", started["ticket"]}},
         {{"group", "dp"}}, {{"out", ir::Names{"s"}}});
    runtime::Scope scope;
    scope.set("s", filled({16}, static_cast<float>(rank)));
    runtime::Executor exe({.plan = {.groups = groups}});
    const auto out = exe.run(main, scope, {}, {"s"});
    EXPECT_EQ(out[0].data<float>()[15], 0.5f);
    const runtime::Plan& plan = exe.plan(main, scope, {}, {"s"});
    EXPECT_TRUE(plan.buckets().empty());
    for (const runtime::Step& step : plan.steps()) EXPECT_EQ(step.pointers.back(), nullptr);
  });
}

TEST(AllReduce, WorkersWithOtherShapesAreAnError) {
  const auto mixed = [](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    // The same number of bytes, so that only the marks differ.
    const ir::Var x = b.data("x", f32, rank == 0 ? Shape{4, 8} : Shape{8, 4});
    const ir::Var a = b.op("scale", {{"x", x}}, {}, {{"out", "a"}});
    const auto started = b.op("all_reduce_start", {{"xs", std::vector{a}}}, {{"group", "dp"}},
                              {{"out", ir::Names{"a"}}});
    b.op("all_reduce_wait", {{"xs", std::vector{a}}, {"ticket", started["ticket"]}},
         {{"group", "dp"}}, {{"out", ir::Names{"a"}}});
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups}});
    EXPECT_THROW(exe.run(main, scope, {{"x", random(x.shape())}}, {"a"}), Error);
  };
  run_workers(2, mixed);
}

TEST(AllReduce, NamesAGroupThatIsNotThere) {
  Averages program;
  runtime::Scope scope;
  runtime::Executor exe({.plan = {.groups = std::make_shared<comm::Groups>()}});
  try {
    exe.run(program.main, scope, {{"x", random({3, 5})}, {"y", random({7})}}, {"a"});
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("'dp'"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("fleet::init"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace fleetx::testing
