#include "fleetx/autograd/backward.h"

#include <gtest/gtest.h>

#include "fleetx/autograd/recompute.h"
#include "fleetx/ir/verifier.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/sample_program.h"

namespace fleetx::autograd {
namespace {

using ir::Var;
using testing::SampleProgram;

TEST(Backward, GivesAGradientForEveryParameterInOrderOfReadiness) {
  SampleProgram s;
  const std::vector<ParamGrad> grads = append_backward(s.loss);
  ASSERT_EQ(grads.size(), 4u);
  EXPECT_TRUE(grads[0].param.name().starts_with("fc_1"));  // the last layer is ready first
  EXPECT_TRUE(grads[3].param.name().starts_with("fc_0"));
  for (const ParamGrad& g : grads) EXPECT_EQ(g.grad.shape(), g.param.shape());
  ir::verify(s.main);

  // The same, as strategies ask for it.
  const ir::Training& training = s.main.training();
  EXPECT_EQ(training.loss, s.loss.name());
  EXPECT_EQ(training.seed, ir::grad_name(s.loss.name()));
  ASSERT_EQ(training.parameters.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(training.parameters[i].name, grads[i].param.name());
    EXPECT_EQ(training.parameters[i].gradient, grads[i].grad.name());
    EXPECT_EQ(training.parameters[i].learning_rate, "");
  }
}

TEST(Backward, RefusesALossThatDoesNotExistInEveryStep) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const Var w = b.parameter({.name = "w", .shape = {1}});
  const Var on = b.state("on", DType::kBool, {1});
  const auto under = b.under(on);
  const Var loss = b.op("scale", {{"x", w}}, {{"scale", 2.0}});
  testing::expect_error(Error::Kind::kInvalidArgument, {"scale", "only where 'on' is true"},
                        [&] { append_backward(loss); });
}

TEST(Backward, ASecondLossIsDifferentiatedWhereThatIsAllowed) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const Var w = b.parameter({.name = "w", .shape = {1}, .init = {"fill", {{"value", 3.0}}}});
  const Var v = b.parameter({.name = "v", .shape = {1}, .init = {"fill", {{"value", 5.0}}}});
  const Var product = b.op("elementwise_mul", {{"x", w}, {"y", v}});
  const Var twice = b.op("scale", {{"x", product}}, {{"scale", 2.0}});
  const auto first = append_backward(product, {.parameters = {"w"}});
  testing::expect_error(Error::Kind::kInvalidArgument, {"already has a backward part"},
                        [&] { append_backward(twice); });
  const auto second = append_backward(twice, {.parameters = {"v", "w"}, .again = true});
  ir::verify(main);
  EXPECT_EQ(main.training().loss, product.name());
  ASSERT_EQ(main.training().parameters.size(), 2u);
  EXPECT_EQ(main.training().parameters[0].gradient, first[0].grad.name());
  runtime::Scope scope;
  runtime::Executor exe;
  exe.run(startup, scope);
  const auto out = exe.run(main, scope, {}, {first[0].grad.name(), second[0].grad.name()});
  EXPECT_EQ(out[0].data<float>()[0], 5.0f);
  EXPECT_EQ(out[1].data<float>()[0], second[0].param.name() == "v" ? 6.0f : 10.0f);
}

TEST(Backward, InputsWithoutStopGradientGetANamedOne) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const Var w = b.parameter({.name = "w", .shape = {2}, .init = {"fill", {{"value", 3.0}}}});
  Var x = b.data("x", DType::kF32, {2});
  x.stop_gradient(false);
  const Var y = b.data("y", DType::kF32, {2});
  const Var sum = b.op("elementwise_add", {{"x", x}, {"y", w}});
  append_backward(b.op("reduce_sum", {{"x", b.op("elementwise_mul", {{"x", sum}, {"y", y}})}}));
  ir::verify(main);
  EXPECT_NE(main.find("x@GRAD"), nullptr);
  EXPECT_EQ(main.find("y@GRAD"), nullptr);
}

TEST(Backward, AddsUpAtFanOut) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const Var w = b.parameter({.name = "w", .shape = {3}, .init = {"fill", {{"value", 2.0}}}});
  const Var square = b.op("elementwise_mul", {{"x", w}, {"y", w}});
  const Var both = b.op("elementwise_add", {{"x", square}, {"y", w}});
  const Var loss = b.op("reduce_sum", {{"x", both}});
  const auto grads = append_backward(loss);
  runtime::Scope scope;
  runtime::Executor exe;
  exe.run(startup, scope);
  const Tensor got = exe.run(main, scope, {}, {grads[0].grad.name()})[0];
  for (const float g : got.data<float>()) EXPECT_EQ(g, 5.0f);  // d(w*w + w) = 2w + 1
}

TEST(Backward, StopGradientAndNoGradCutTheWay) {
  {
    SampleProgram s;
    s.b.var("fc_0.w_0").stop_gradient();
    EXPECT_EQ(append_backward(s.loss).size(), 3u);
  }
  {
    SampleProgram s;
    const auto grads = append_backward(s.loss, {.parameters = {}, .no_grad = {"relu_0.tmp_0"}});
    EXPECT_EQ(grads.size(), 2u);  // only fc_1
  }
  {
    SampleProgram s;
    EXPECT_EQ(append_backward(s.loss, {.parameters = {"fc_1.b_0"}, .no_grad = {}}).size(), 1u);
  }
}

TEST(Backward, MistakesAreNamed) {
  SampleProgram s;
  EXPECT_THROW(append_backward(s.logits), Error);  // not one element
  append_backward(s.loss);
  EXPECT_THROW(append_backward(s.loss), Error);  // twice
}

TEST(Backward, AParameterThatSharesAGradientGetsItsOwnVariable) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const Var u = b.parameter({.name = "u", .shape = {2}});
  const Var v = b.parameter({.name = "v", .shape = {2}});
  const Var loss = b.op("reduce_sum", {{"x", b.op("elementwise_add", {{"x", u}, {"y", v}})}});
  const auto grads = append_backward(loss);
  ASSERT_EQ(grads.size(), 2u);
  EXPECT_NE(grads[0].grad.name(), grads[1].grad.name());
}

TEST(Recompute, IsARewriteThatChangesNoValueAndSavesMemory) {
  const auto build = [](ir::Program& main, ir::Program& startup, bool recompute) {
    ir::Builder b(main, startup);
    Var h = b.data("x", DType::kF32, {-1, 64});
    ir::Names checkpoints;
    for (int layer = 0; layer < 8; ++layer) {
      const Var w = b.parameter({.name = str("w", layer),
                                 .shape = {64, 64},
                                 .init = {"uniform", {{"low", -0.2}, {"high", 0.2}}}});
      h = b.op("fc", {{"x", h}, {"w", w}});
      h = b.op("dropout", {{"x", h}, {"step", b.step()}}, {{"p", 0.3}});
      h = b.op("tanh", {{"x", h}});
      if (layer % 2 == 1) checkpoints.push_back(h.name());
    }
    const Var loss = b.op("mean", {{"x", h}}, {}, {{"out", "loss"}});
    const auto grads = append_backward(loss);
    ir::Names fetch{"loss"};
    for (const ParamGrad& g : grads) fetch.push_back(g.grad.name());
    if (recompute) {
      autograd::recompute(main, recomputable(main, checkpoints));
      ir::verify(main, "after recompute");
    }
    return fetch;
  };
  std::vector<std::vector<Tensor>> results;
  std::vector<size_t> arenas;
  for (const bool recompute : {false, true}) {
    ir::Program main, startup;
    const ir::Names fetch = build(main, startup, recompute);
    runtime::Scope scope;
    runtime::Executor exe;
    exe.run(startup, scope);
    const runtime::Feeds feeds{{"x", testing::random({256, 64})}};
    results.push_back(exe.run(main, scope, feeds, fetch));
    arenas.push_back(exe.plan(main, scope, feeds, fetch).arena_bytes());
  }
  for (size_t i = 0; i < results[0].size(); ++i)
    testing::expect_close(results[1][i], results[0][i], 0.0, str("result ", i));
  EXPECT_LT(arenas[1], arenas[0] * 3 / 4);
}

TEST(Recompute, AnUnknownCheckpointIsAnError) {
  SampleProgram s;
  EXPECT_THROW(recomputable(s.main, {"nothing"}), Error);
}

}  // namespace
}  // namespace fleetx::autograd
