#include <gtest/gtest.h>

#include "fleetx/autograd/backward.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "fleetx/runtime/executor.h"
#include "fleetx/strategies/strategy.h"
#include "tests/support/op_case.h"

namespace fleetx::strategies {
namespace {

// Backward needs a (kept) and b (given up).
constexpr const char* kText = R"(program
data x : f32[-1,4]
state s : f32[4]
var loss : f32[1]
var dloss : f32[1]
var a : f32[-1,4]
var b : f32[-1,4]
var c : f32[-1,4]
var dc : f32[-1,4]
var db : f32[-1,4]
var da : f32[-1,4]

forward:
a = scale(x) {scale=2.0}
b = scale(a) {scale=3.0}
c = elementwise_mul(b, a)
loss = mean(c)

backward:
dloss = fill() {shape=[1], value=1.0}
dc = fill_like(c) {value=1.0}
db = elementwise_mul(dc, a)
da = elementwise_mul(dc, b)

training:
loss(loss, dloss)
)";

ir::Program apply(const ir::Strings& checkpoints, const std::string& text = kText) {
  ir::Program main = ir::parse_text(text), startup;
  ResolvedStrategies resolved({{"recompute", {{"checkpoints", checkpoints}}}}, {});
  resolved.validate(main);
  resolved.apply(Phase::kGradients, {main, startup});
  return main;
}

TEST(Recompute, BackwardReadsCopiesOfWhatIsNotKept) {
  const ir::Program main = apply({"a", "c"});
  std::vector<std::string> backward;
  for (const ir::Op& op : main.ops())
    if (op.role == ir::Role::kBackward) backward.push_back(ir::to_text(op));
  EXPECT_EQ(backward, (std::vector<std::string>{
                          "dloss = fill() {shape=[1], value=1.0}", "dc = fill_like(c) {value=1.0}",
                          "db = elementwise_mul(dc, a)", "b@RECOMPUTE = scale(a) {scale=3.0}",
                          "da = elementwise_mul(dc, b@RECOMPUTE)"}));
}

TEST(Recompute, RefusesWhatMakesNoSense) {
  EXPECT_THROW(apply({}), Error);
  EXPECT_THROW(apply({"no_such_variable"}), Error);
  EXPECT_THROW(apply({"x"}), Error);
  EXPECT_THROW(apply({"s"}), Error);
  EXPECT_THROW(apply({"a"}, "program\ndata x : f32[4]\nvar a : f32[4]\n\nforward:\na = scale(x)\n"),
               Error);
}

struct Training {
  std::vector<float> losses;
  std::vector<Tensor> state;  // running statistics and parameters at the end
  size_t arena_bytes = 0;
};

// Eight layers with what is hard to compute twice: random numbers and running statistics.
Training train(bool recompute) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 32});
  ir::Strings checkpoints;
  ir::Var h = x;
  for (int i = 0; i < 8; ++i) {
    h = nn::batch_norm(nn::fc(h, {.size = 32, .act = "tanh"}), {.act = "relu"});
    h = nn::dropout(h, {.p = 0.2});
    if (i % 3 == 2) checkpoints.push_back(h.name());
  }
  const ir::Var loss = b.op("mean", {{"x", b.op("square", {{"x", h}})}}, {}, {{"out", "loss"}});
  const auto grads = autograd::append_backward(loss);
  {
    const auto guard = b.in_role(ir::Role::kUpdate);
    const ir::Var lr = b.state("lr", f32, {1}, 0.1);
    for (const auto& [param, grad] : grads)
      b.op("sgd", {{"param", std::vector{param}}, {"grad", std::vector{grad}}, {"lr", lr}}, {},
           {{"param_out", ir::Names{param.name()}}});
    b.op("increment", {{"x", b.step()}}, {}, {{"out", b.step()}});
  }
  if (recompute) {
    ResolvedStrategies resolved({{"recompute", {{"checkpoints", checkpoints}}}}, {});
    resolved.apply(Phase::kGradients, {main, startup});
  }

  runtime::Scope scope;
  runtime::Executor exe(runtime::ExecutorOptions{});
  exe.run(startup, scope);
  const runtime::Feeds feeds = {{"x", testing::random({512, 32})}};
  Training t;
  for (int step = 0; step < 4; ++step)
    t.losses.push_back(exe.run(main, scope, feeds, {"loss"})[0].item<float>());
  for (const std::string& name : scope.names()) t.state.push_back(scope.get(name));
  t.arena_bytes = exe.plan(main, scope, feeds, {"loss"}).arena_bytes();
  return t;
}

TEST(Recompute, SameBitsInLessMemory) {
  const Training keep = train(false), again = train(true);
  EXPECT_EQ(keep.losses, again.losses);
  EXPECT_NE(keep.losses[0], keep.losses[3]);
  ASSERT_EQ(keep.state.size(), again.state.size());
  for (size_t i = 0; i < keep.state.size(); ++i)
    testing::expect_close(again.state[i], keep.state[i], 0, "state");
  EXPECT_LT(static_cast<double>(again.arena_bytes), 0.7 * static_cast<double>(keep.arena_bytes));
}

}  // namespace
}  // namespace fleetx::strategies
