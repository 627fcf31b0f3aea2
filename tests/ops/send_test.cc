// send and recv.
#include <gtest/gtest.h>

#include <cmath>

#include "fleetx/autograd/backward.h"
#include "fleetx/runtime/executor.h"
#include "tests/ops/collective_case.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/workers.h"

namespace fleetx::testing {
namespace {

ir::Attrs to(int peer, int tag = 0) { return {{"group", "dp"}, {"peer", peer}, {"tag", tag}}; }

// Every rank sends to the next and receives from the one before.
TEST(Send, AroundARing) {
  for (const int ranks : {2, 3, 4}) {
    for (const DType dtype : {f32, bf16, f16, i64}) {
      run_workers(ranks, [&](int rank, const SharedGroups& groups) {
        const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
        ir::Program main, startup;
        ir::Builder b(main, startup);
        const ir::Var x = b.data("x", dtype, {-1, 3});
        b.op("send", {{"xs", std::vector{x, x}}}, to(next, 5), {{"link", "link"}});
        b.op("recv", {{"like", x}}, to(before, 5), {{"out", ir::Names{"first"}}});
        b.op("recv", {{"like", x}}, to(before, 5), {{"out", ir::Names{"second"}}});
        const auto sent = b.op("send_start", {{"xs", std::vector{x}}}, to(next));
        const auto started =
            b.op("recv_start", {{"like", x}}, to(before), {{"out", ir::Names{"pending"}}});
        b.op("recv_wait", {{"xs", std::vector{b.var("pending")}}, {"ticket", started["ticket"]}},
             to(before), {{"out", ir::Names{"overlapped"}}});
        b.op("send_wait", {{"xs", std::vector{x}}, {"ticket", sent["ticket"]}}, to(next),
             {{"out", ir::Names{"sent"}}});
        runtime::Scope scope;
        runtime::Executor exe({.plan = {.groups = groups}});
        const Tensor own = tensor_of(value_of(rank, ranks), dtype, {2 * ranks, 3});
        for (int step = 0; step < 2; ++step) {
          const auto out =
              exe.run(main, scope, {{"x", own}}, {"first", "second", "overlapped", "sent", "link"});
          for (const size_t i : {0u, 1u, 2u})
            EXPECT_EQ(values_in(out[i]), value_of(before, ranks)) << i << " on rank " << rank;
          EXPECT_EQ(values_in(out[3]), value_of(rank, ranks));
          EXPECT_EQ(values_in(out[4]), Value{0});
        }
      });
    }
  }
}

// A part of a batch of any size: three rows for each of its samples.
TEST(Send, RecvMakesRowsOfABatch) {
  run_workers(2, [&](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var x = b.data("x", f32, {-1});
    if (rank == 0) {
      const ir::Var half =
          b.op("slice", {{"x", x}},
               {{"axes", ir::Ints{0}}, {"starts", ir::Ints{0}}, {"ends", ir::Ints{6}}});
      b.op("send", {{"xs", std::vector{half}}}, to(1));
    } else {
      ir::Attrs attrs = to(0);
      attrs.insert(
          {{"shape", ir::Ints{0, 1}}, {"per_row", ir::Ints{3, 0}}, {"parts", 2}, {"dtype", "f32"}});
      const ir::Var y = b.op("recv", {{"like", x}}, attrs, {{"out", ir::Names{"y"}}});
      EXPECT_EQ(y.shape(), Shape({-1, 1}));
      attrs.insert_or_assign("per_row", ir::Ints{3});
      expect_error(Error::Kind::kInvalidArgument, {"per_row has 1 numbers, shape is"}, [&] {
        b.op("recv", {{"like", x}}, attrs, {{"out", ir::Names{"z"}}});
      });
    }
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups}});
    // Of 4 samples, the receiver gets half: 2 x 3 rows.
    const runtime::Feeds feeds{
        {"x", Tensor::of<float>(
                  rank == 0 ? Shape{6} : Shape{4},
                  rank == 0 ? std::vector<float>{1, 2, 3, 4, 5, 6} : std::vector<float>(4))}};
    const auto out = exe.run(main, scope, feeds, rank == 0 ? ir::Names{} : ir::Names{"y"});
    if (rank == 1) {
      EXPECT_EQ(out[0].shape(), Shape({6, 1}));
      EXPECT_EQ(values_in(out[0]), (Value{1, 2, 3, 4, 5, 6}));
      EXPECT_TRUE(
          contains(error_of([&] {
                     exe.run(main, scope, {{"x", Tensor::of<float>({3}, {1, 2, 3})}}, {"y"});
                   }),
                   "its rows cannot be cut into 2 equal parts"));
    }
  });
}

TEST(Send, RecvMakesTheShapeThatItIsTold) {
  run_workers(2, [&](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    if (rank == 0) {
      b.op("send", {{"xs", std::vector{b.data("x", i64, {2, 2})}}}, to(1));
    } else {
      ir::Attrs attrs = to(0);
      attrs.insert({{"shape", Shape{2, 2}}, {"dtype", "i64"}});
      b.op("recv", {}, attrs, {{"out", ir::Names{"y"}}});
    }
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups}});
    const Tensor x = Tensor::of<int64_t>({2, 2}, {1, 2, 3, 4});
    if (rank == 0)
      exe.run(main, scope, {{"x", x}});  // nothing is fetched
    else
      expect_close(exe.run(main, scope, {}, {"y"})[0], x, 0, "y");
  });
}

// The gradient of send receives, that of recv sends: y = w * x crosses from rank 0 to 1, and the
// loss of rank 1 is sum(y^2).
TEST(Send, GradientsGoBackTheSameWay) {
  const Tensor x = random({2, 3}, 1), w = random({2, 3}, 2);
  run_workers(2, [&](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    runtime::Scope scope;
    runtime::Feeds feeds;
    ir::Var loss;
    if (rank == 0) {
      const ir::Var weight = b.parameter({.name = "w", .shape = {2, 3}});
      const ir::Var y = b.op("elementwise_mul", {{"x", b.data("x", f32, {2, 3})}, {"y", weight}});
      loss = b.op("send", {{"xs", std::vector{y}}}, to(1));
      scope.set("w", w);
      feeds.emplace_back("x", x);
    } else {
      const ir::Var link = b.parameter({.name = "link", .shape = {1}});
      const ir::Var like = b.data("like", f32, {2, 3});
      const ir::Var y =
          b.op("recv", {{"like", like}, {"link", link}}, to(0), {{"out", ir::Names{"y"}}});
      const ir::Var squares = b.op("elementwise_mul", {{"x", y}, {"y", y}});
      loss = b.op("reduce_sum", {{"x", squares}});
      scope.set("link", filled({1}, 0));
      feeds.emplace_back("like", filled({2, 3}, 0));
    }
    const ir::Var grad = autograd::append_backward(loss).front().grad;
    const auto out = runtime::Executor({.plan = {.groups = groups}})
                         .run(main, scope, feeds, {loss.name(), grad.name()});
    if (rank == 1) {
      expect_close(out[1], filled({1}, 0), 0, "gradient of the link");
      return;
    }
    const Tensor want = zip(x, w, [](float a, float b) { return 2 * a * a * b; });
    expect_close(out[1], want, 1e-5, "gradient across ranks");
  });
}

TEST(Send, NeedsAnotherRank) {
  const auto program = [](const char* op, int peer) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var x = b.data("x", f32, {2});
    if (std::string(op) == "send")
      b.op(op, {{"xs", std::vector{x}}}, to(peer));
    else
      b.op(op, {{"like", x}}, to(peer), {{"out", ir::Names{"y"}}});
    return main;
  };
  for (const char* op : {"send", "recv"}) {
    const auto plan = [&](int peer) {
      runtime::plan_program(program(op, peer), {{"x", {f32, {2}}}}, {},
                            {.mesh = Mesh({{"dp", 2}}, 0)});
    };
    expect_error(Error::Kind::kInvalidArgument, {op, "rank 0 of the group 'dp'", "this one"},
                 [&] { plan(0); });
    expect_error(Error::Kind::kInvalidArgument, {op, "rank 2", "'dp' has 2 ranks"},
                 [&] { plan(2); });
    expect_error(Error::Kind::kInvalidArgument, {op, "peer is -1"}, [&] { program(op, -1); });
  }
}

}  // namespace
}  // namespace fleetx::testing
