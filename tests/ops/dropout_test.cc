#include <gtest/gtest.h>

#include "fleetx/base/rng.h"
#include "fleetx/base/threads.h"
#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

OpCase dropout(const Tensor& x, const ir::Attrs& attrs, std::optional<int64_t> step = {}) {
  OpCase c{.label = "", .inputs = {{"x", x}}, .attrs = attrs, .reference = {}};
  if (step) c.inputs.emplace_back("step", Tensor::of<int64_t>({1}, {*step}));
  return c;
}

int64_t kept(const Tensors& out) {
  int64_t n = 0;
  for (const uint8_t m : out[1].data<uint8_t>()) n += m;
  return n;
}

// The mask that the rank of a mesh draws for `rows` rows of ones.
Tensor mask_of(const Mesh& mesh, const ir::Strings& axes, int64_t rows) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 1001});
  b.op("dropout", {{"x", x}}, {{"axes", axes}}, {{"out", "out"}, {"mask", "mask"}});
  runtime::Scope scope;
  return runtime::Executor({.plan = {.mesh = mesh}})
      .run(main, scope, {{"x", filled({rows, 1001}, 1)}}, {"mask"})[0];
}

const AddCases cases("dropout", [](Cases& c) {
  c.add({.label = "test_upscale",
         .inputs = {{"x", random({3, 9})}},
         .attrs = {{"p", 0.3}, {"is_test", true}},
         .reference = [](const Tensors& in) -> Tensors { return {in[0]}; }});
  c.add({.label = "test_downscale",
         .inputs = {{"x", random({3, 9})}},
         .attrs = {{"p", 0.3}, {"is_test", true}, {"mode", "downscale_in_infer"}},
         .reference = [](const Tensors& in) -> Tensors {
           return {map(in[0], [](float x) { return 0.7f * x; })};
         }});
  // The mask does not depend on x, so differences are right in training too.
  for (const char* mode : {"upscale_in_train", "downscale_in_infer"})
    c.add({.label = mode,
           .inputs = {{"x", random({5, 11})}},
           .attrs = {{"p", 0.4}, {"mode", mode}},
           .reference = {}});
  if (c.timed)
    c.add({.label = "perf", .inputs = {{"x", random({1 << 20})}}, .reference = {}, .perf = true});
});

TEST(Dropout, KeepsAndScales) {
  const Tensor x = random({100003}, 1, 0.5f, 1.5f);
  const Tensors out = run_op("dropout", dropout(x, {{"p", 0.25}}));
  EXPECT_NEAR(static_cast<double>(kept(out)) / 100003, 0.75, 0.01);
  for (size_t i = 0; i < 100003; ++i)
    ASSERT_FLOAT_EQ(out[0].data<float>()[i],
                    out[1].data<uint8_t>()[i] ? x.data<float>()[i] / 0.75f : 0.0f)
        << i;
}

TEST(Dropout, DownscaleModeDoesNotScaleInTraining) {
  const Tensor x = filled({1000}, 1);
  const Tensors out = run_op("dropout", dropout(x, {{"p", 0.25}, {"mode", "downscale_in_infer"}}));
  for (size_t i = 0; i < 1000; ++i)
    ASSERT_EQ(out[0].data<float>()[i], static_cast<float>(out[1].data<uint8_t>()[i]));
}

TEST(Dropout, ExtremesOfP) {
  const Tensor x = filled({1000}, 1);
  EXPECT_EQ(kept(run_op("dropout", dropout(x, {{"p", 0.0}}))), 1000);
  const Tensors none = run_op("dropout", dropout(x, {{"p", 1.0}}));
  EXPECT_EQ(kept(none), 0);
  for (const float v : none[0].data<float>()) ASSERT_EQ(v, 0);
}

TEST(Dropout, RanksShareOneDraw) {
  // Two workers with half a batch each draw what one worker draws for all of it.
  const Tensor whole = mask_of({}, {}, 2);
  for (const int rank : {0, 1}) {
    const Tensor half = mask_of(Mesh({{"dp", 2}}, rank), {"dp"}, 1);
    for (size_t i = 0; i < 1001; ++i)
      ASSERT_EQ(half.data<uint8_t>()[i],
                whole.data<uint8_t>()[static_cast<size_t>(rank) * 1001 + i]);
  }
}

// Ranks along an axis that does not split the batch draw the same.
TEST(Dropout, OnlyTheAxesOfTheBatchCount) {
  const Tensor whole = mask_of({}, {}, 4);
  for (int rank = 0; rank < 8; ++rank) {
    const Mesh mesh({{"dp", 2}, {"sharding", 2}, {"mp", 2}}, rank);
    const Tensor part = mask_of(mesh, {"dp", "sharding"}, 1);
    for (size_t i = 0; i < 1001; ++i)
      ASSERT_EQ(part.data<uint8_t>()[i],
                whole.data<uint8_t>()[static_cast<size_t>(rank / 2) * 1001 + i]);
  }
}

TEST(Dropout, AnAxisThatTheMeshLacksIsAnError) {
  expect_error(Error::Kind::kInvalidArgument, {"dropout", "'mp'", "dp"}, [] {
    mask_of(Mesh({{"dp", 2}}, 0), {"mp"}, 1);
  });
}

TEST(Dropout, StepChangesTheMaskAndAbsentMeansZero) {
  const Tensor x = filled({1000}, 1);
  const auto mask = [&](std::optional<int64_t> step) {
    const Tensor m = run_op("dropout", dropout(x, {}, step))[1];
    return std::vector<uint8_t>(m.data<uint8_t>().begin(), m.data<uint8_t>().end());
  };
  EXPECT_EQ(mask({}), mask(0));
  EXPECT_EQ(mask(3), mask(3));
  EXPECT_NE(mask(3), mask(4));
}

TEST(Dropout, MaskDoesNotDependOnThreads) {
  const int before = num_threads();
  const Tensor x = filled({100003}, 1);
  set_num_threads(1);
  const Tensor one = run_op("dropout", dropout(x, {}))[1];
  set_num_threads(3);
  const Tensor three = run_op("dropout", dropout(x, {}))[1];
  set_num_threads(before);
  EXPECT_TRUE(std::equal(one.data<uint8_t>().begin(), one.data<uint8_t>().end(),
                         three.data<uint8_t>().begin()));
}

}  // namespace
}  // namespace fleetx::testing
