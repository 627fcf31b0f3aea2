// The borders of what ranks compute together. Several ranks: also tests/strategies/
// tensor_parallel_test.cc, which trains with them.
#include <gtest/gtest.h>

#include "fleetx/autograd/backward.h"
#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/alone.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/workers.h"

namespace fleetx::testing {
namespace {

// Of one rank every result is what there was.
const bool kCasesAdded = [] {
  for (const char* op : {"group_identity", "group_sum", "group_part", "group_concat"})
    AddCases(op, [](Cases& c) {
      c.add({.label = "alone",
             .inputs = {{"x", random({3, 4})}},
             .attrs = {{"group", "alone"}, {"ranks", 1}},
             .reference = [](const Tensors& in) -> Tensors { return in; }});
    });
  return true;
}();

constexpr int kRanks = 3;

// out and the gradient of x for the loss sum(out * k), the same on all ranks where out is; k counts
// the elements of out from 1 on, k * (rank + 1) where ranks have different outs.
struct Made {
  std::vector<float> out, dx;
};

std::vector<Made> run(const std::string& op, const Shape& shape, ir::Attrs attrs, bool same_x,
                      bool same_k) {
  std::vector<Made> all(kRanks);
  run_workers(kRanks, [&](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    ir::Var x = b.data("x", f32, shape);
    x.stop_gradient(false);
    ir::Attrs full = attrs;
    full.emplace("group", "dp");
    full.emplace("ranks", kRanks);
    const ir::Var out = b.op(op, {{"x", x}}, full);
    const ir::Var k = b.data("k", f32, out.shape());
    const ir::Var loss =
        b.op("reduce_sum", {{"x", b.op("elementwise_mul", {{"x", out}, {"y", k}})}});
    const ir::Var one = b.op("fill", {}, {{"shape", loss.shape()}, {"value", 1.0}});
    const ir::Var dx = autograd::gradients({loss}, {x}, {one}).front();
    Tensor value(f32, shape), weights(f32, out.shape());
    for (int64_t i = 0; i < shape.numel(); ++i)
      value.data<float>()[static_cast<size_t>(i)] =
          static_cast<float>(i + (same_x ? 0 : 100 * rank));
    for (int64_t i = 0; i < out.shape().numel(); ++i)
      weights.data<float>()[static_cast<size_t>(i)] =
          static_cast<float>((i + 1) * (same_k ? 1 : rank + 1));
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups}});
    const auto got = exe.run(main, scope, {{"x", value}, {"k", weights}}, {out.name(), dx.name()});
    const auto list = [](const Tensor& t) {
      return std::vector<float>(t.data<float>().begin(), t.data<float>().end());
    };
    all[static_cast<size_t>(rank)] = {list(got[0]), list(got[1])};
  });
  return all;
}

using Floats = std::vector<float>;

TEST(Group, IdentityAddsGradients) {
  for (const Made& made : run("group_identity", {2}, {}, true, false)) {
    EXPECT_EQ(made.out, (Floats{0, 1}));
    EXPECT_EQ(made.dx, (Floats{6, 12}));  // k of ranks: 1, 2, 3 times [1, 2]
  }
}

TEST(Group, SumHasTheGradientOfOneLoss) {
  for (const Made& made : run("group_sum", {2}, {}, false, true)) {
    EXPECT_EQ(made.out, (Floats{300, 303}));
    EXPECT_EQ(made.dx, (Floats{1, 2}));
  }
}

TEST(Group, PartsOfRows) {
  const auto all = run("group_part", {2, 3}, {}, true, false);
  for (size_t rank = 0; rank < kRanks; ++rank) {
    const auto r = static_cast<float>(rank);
    EXPECT_EQ(all[rank].out, (Floats{r, 3 + r}));
    EXPECT_EQ(all[rank].dx, (Floats{1, 2, 3, 2, 4, 6}));  // what all ranks have
  }
}

TEST(Group, ConcatJoinsRows) {
  const auto all = run("group_concat", {2, 1}, {}, false, true);
  for (size_t rank = 0; rank < kRanks; ++rank) {
    const auto r = static_cast<float>(rank);
    EXPECT_EQ(all[rank].out, (Floats{0, 100, 200, 1, 101, 201}));
    EXPECT_EQ(all[rank].dx, (Floats{1 + r, 4 + r}));
  }
  EXPECT_EQ(run("group_concat", {1, 2}, {{"axis", 0}}, false, true)[1].out,
            (Floats{0, 1, 100, 101, 200, 201}));
}

TEST(Group, WhatIsRefused) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {2, 4});
  expect_error(Error::Kind::kInvalidArgument, {"dimension 1 must be a multiple of ranks", "3"},
               [&] {
                 b.op("group_part", {{"x", x}}, {{"group", "mp"}, {"ranks", 3}});
               });
  expect_error(Error::Kind::kInvalidArgument, {"ranks is 0"}, [&] {
    b.op("group_sum", {{"x", x}}, {{"group", "mp"}, {"ranks", 0}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"the program is for 3 ranks", "has 2"}, [] {
    run_workers(2, [](int, const SharedGroups& groups) {
      ir::Program p, s;
      ir::Builder two(p, s);
      const ir::Var out =
          two.op("group_sum", {{"x", two.data("x", f32, {2})}}, {{"group", "dp"}, {"ranks", 3}});
      runtime::Scope scope;
      runtime::Executor({.plan = {.groups = groups}})
          .run(p, scope, {{"x", filled({2}, 1)}}, {out.name()});
    });
  });
}

}  // namespace
}  // namespace fleetx::testing
