#include "fleetx/ir/transform.h"

#include <gtest/gtest.h>

#include "fleetx/ir/builder.h"
#include "fleetx/ir/text.h"
#include "fleetx/ir/verifier.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

// h = 0; a step: h' = h + w * x, of which all are collected behind it.
struct Sum {
  ir::Program main, startup;
  ir::Step step = {.ops = {"product", "next"},
                   .carried = {{"h", "next"}},
                   .collected = {{"all", "next"}, {"last", "next"}}};

  Sum() {
    ir::Builder b(main, startup);
    const ir::Var x = b.data("x", f32, {-1, 3}), w = b.data("w", f32, {-1, 3});
    const ir::Var h = b.op("fill_like", {{"x", x}}, {{"value", 0.0}}, {{"out", "h"}});
    const ir::Var product = b.op("elementwise_mul", {{"x", x}, {"y", w}}, {}, {{"out", "product"}});
    const ir::Var next = b.op("elementwise_add", {{"x", h}, {"y", product}}, {}, {{"out", "next"}});
    const ir::Var all = b.op("concat", {{"xs", {next}}}, {{"axis", 0}}, {{"out", "all"}});
    b.op("assign", {{"x", next}}, {}, {{"out", "last"}});
    b.op("mean", {{"x", all}}, {}, {{"out", "loss"}});
  }
};

int count(const ir::Program& p, const std::string& type) {
  return static_cast<int>(std::count_if(p.ops().begin(), p.ops().end(),
                                        [&](const ir::Op& op) { return op.type() == type; }));
}

TEST(Repeat, StepsFollowEachOther) {
  const Sum sum;
  const ir::Program three = ir::repeat(sum.main, sum.step, 3);
  ir::verify(three);
  EXPECT_EQ(count(three, "elementwise_add"), 3);
  EXPECT_EQ(count(three, "elementwise_mul"), 3);
  EXPECT_EQ(count(three, "fill_like"), 1);
  std::vector<const ir::Op*> adds;
  for (const ir::Op& op : three.ops()) {
    if (op.type() == "elementwise_add") adds.push_back(&op);
    if (op.type() == "concat") {
      ASSERT_EQ(op.in("xs").size(), 3u);
      for (size_t i = 0; i < 3; ++i) EXPECT_EQ(op.in("xs")[i], adds[i]->out("out").front());
    }
  }
  for (const ir::Op& op : three.ops()) {
    if (op.type() == "assign") {
      EXPECT_EQ(op.in("x"), adds[2]->out("out"));
    }
  }
  EXPECT_EQ(adds[0]->in("x").front(), "h");
  for (size_t i = 1; i < 3; ++i) EXPECT_EQ(adds[i]->in("x"), adds[i - 1]->out("out"));
}

TEST(Repeat, OnceIsTheProgram) {
  const Sum sum;
  EXPECT_EQ(ir::to_text(ir::repeat(sum.main, sum.step, 1)), ir::to_text(sum.main));
}

TEST(RepeatErrors, NameWhatIsMissing) {
  Sum sum;
  sum.step.ops.push_back("nobody");
  expect_error(Error::Kind::kInvalidArgument, {"3 ops", "2 of them"},
               [&] { ir::repeat(sum.main, sum.step, 2); });
  sum.step.ops.pop_back();
  sum.step.collected = {{"loss", "next"}};
  expect_error(Error::Kind::kInvalidArgument, {"'loss'", "concat"},
               [&] { ir::repeat(sum.main, sum.step, 2); });
}

TEST(WithInputs, TypesFollowTheNewShapes) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 4, 3});
  const ir::Var flat = b.op("reshape", {{"x", x}}, {{"shape", ir::Ints{0, -1}}}, {{"out", "flat"}});
  b.op("reduce_sum", {{"x", flat}}, {{"dim", ir::Ints{1}}}, {{"out", "sum"}});
  const ir::Program loose = ir::with_inputs(main, {{"x", {-1, -1, 3}}});
  ir::verify(loose);
  EXPECT_EQ(loose.var("x").type.shape, (Shape{-1, -1, 3}));
  EXPECT_EQ(loose.var("flat").type.shape, (Shape{-1, -1}));
  EXPECT_EQ(main.var("flat").type.shape, (Shape{-1, 12}));
  const ir::Program known = ir::with_inputs(loose, {{"x", {2, 5, 3}}});
  EXPECT_EQ(known.var("flat").type.shape, (Shape{2, 15}));
  EXPECT_EQ(known.var("sum").type.shape, (Shape{2}));
}

TEST(WithInputs, WhatAnOpDoesNotTakeIsItsError) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 3}), w = b.data("w", f32, {3, 2});
  b.op("matmul", {{"x", x}, {"y", w}}, {}, {{"out", "out"}});
  expect_error(Error::Kind::kInvalidArgument, {"matmul"}, [&] {
    (void)ir::with_inputs(main, {{"x", {-1, 4}}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"'out' is no input"}, [&] {
    (void)ir::with_inputs(main, {{"out", {-1, 4}}});
  });
}

}  // namespace
}  // namespace fleetx::testing
