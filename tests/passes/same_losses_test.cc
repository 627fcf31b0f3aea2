// Passes change how something is computed, never what: training, and testing then, with a pass and
// without it gives the same losses.
#include <gtest/gtest.h>

#include <cmath>

#include "fleetx/autograd/backward.h"
#include "fleetx/ir/transform.h"
#include "fleetx/nn/nn.h"
#include "fleetx/passes/pass.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/op_case.h"

namespace fleetx::passes {
namespace {

using ir::Var;

constexpr int64_t kBatch = 6;

// Convolutions with batch_norm and a residual block; hard labels.
Var image_loss(ir::Builder& b) {
  const Var x = b.data("x", f32, {-1, 3, 8, 8});
  const Var label = b.data("label", i64, {-1, 1});
  Var h = nn::conv2d(x, {.filters = 8, .kernel = 3, .padding = 1, .act = "relu"});
  Var y = nn::conv2d(h, {.filters = 8, .kernel = 3, .padding = 1, .bias = false});
  y = nn::batch_norm(y, {.act = "relu"});
  y = nn::conv2d(y, {.filters = 8, .kernel = 3, .padding = 1, .bias = false});
  y = nn::batch_norm(y);
  h = nn::relu(b.op("elementwise_add", {{"x", y}, {"y", h}}));
  h = nn::fc(nn::pool2d(h, {.type = "avg", .global = true}), {.size = 5});
  const Var p = nn::softmax(h);
  b.op("accuracy", {{"x", p}, {"label", label}});
  return b.op("mean", {{"x", nn::cross_entropy(p, label)}}, {}, {{"out", "loss"}});
}

// Products with and without layers, numbers of the data beside learned ones, siblings beside a
// residual connection, activations, chains of element-wise ops; soft labels.
Var dense_loss(ir::Builder& b) {
  const Var x = b.data("x", f32, {-1, 3, 8, 8});
  const Var label = b.data("label", f32, {-1, 5});
  Var h = nn::fc(x, {.size = 16, .act = "tanh"});
  h = nn::fc(nn::concat({h, nn::reshape(x, {0, 192})}, 1), {.size = 16, .act = "sigmoid"});
  h = nn::fc(h, {.size = 16, .act = "gelu"});
  const Var gate = nn::fc(h, {.size = 16});
  const Var gated = b.op("elementwise_mul", {{"x", nn::fc(h, {.size = 16})}, {"y", gate}});
  h = b.op("elementwise_add", {{"x", h}, {"y", gated}});
  const Var w = b.parameter({.name = "w", .shape = {16, 16}, .init = {"uniform", {}}});
  const Var bias = b.parameter({.name = "b", .shape = {16}, .init = {"uniform", {}}});
  const Var product = b.op("matmul", {{"x", h}, {"y", w}});
  h = nn::swish(b.op("elementwise_add", {{"x", product}, {"y", bias}}));
  // swish(h) * h - exp(-h), as a chain
  const Var shrunk = b.op("exp", {{"x", b.op("scale", {{"x", h}}, {{"scale", -1.0}})}});
  h = b.op("elementwise_sub",
           {{"x", b.op("elementwise_mul", {{"x", nn::swish(h)}, {"y", h}})}, {"y", shrunk}});
  const Var p = nn::softmax(nn::fc(h, {.size = 5}));
  return b.op("mean", {{"x", nn::cross_entropy(p, label, {.soft_label = true})}}, {},
              {{"out", "loss"}});
}

void append_updates(ir::Builder& b, const Var& loss) {
  const auto grads = autograd::append_backward(loss);
  const auto guard = b.in_role(ir::Role::kUpdate);
  const Var lr = b.state("lr", f32, {1}, 0.05);
  for (const auto& [param, grad] : grads) {
    const Var velocity = b.state(param.name() + ".velocity", f32, param.shape());
    b.op("momentum",
         {{"param", std::vector{param}},
          {"grad", std::vector{grad}},
          {"velocity", std::vector{velocity}},
          {"lr", lr}},
         {{"l2", ir::Floats{param.shape().rank() > 1 ? 1e-3 : 0.0}}},
         {{"param_out", ir::Names{param.name()}}, {"velocity_out", ir::Names{velocity.name()}}});
  }
}

struct Net {
  const char* name;
  Var (*build)(ir::Builder&);
  Tensor label;
};

std::vector<Net> nets() {
  return {{"image", image_loss, testing::random_ints({kBatch, 1}, 0, 5)},
          {"dense", dense_loss, testing::random({kBatch, 5}, 7, 0.0f, 0.4f)}};
}

struct Training {
  std::vector<float> losses;
  float test_loss = 0;  // afterwards, by the test program
  std::vector<Report> reports;
};

Training train(const Net& net, const std::set<std::string>& skip) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const Var loss = net.build(b);
  const ir::Program test = ir::clone_for_test(main);
  append_updates(b, loss);

  runtime::Scope scope;
  runtime::ExecutorOptions options;
  options.plan.skip = skip;
  runtime::Executor exe(options);
  exe.run(startup, scope);
  const runtime::Feeds feeds = {{"x", testing::random({kBatch, 3, 8, 8})}, {"label", net.label}};
  Training run;
  for (int step = 0; step < 6; ++step)
    run.losses.push_back(exe.run(main, scope, feeds, {"loss"})[0].item<float>());
  run.reports = exe.plan(main, scope, feeds, {"loss"}).passes();
  run.test_loss = exe.run(test, scope, feeds, {"loss"})[0].item<float>();
  for (const Report& r : exe.plan(test, scope, feeds, {"loss"}).passes()) run.reports.push_back(r);
  return run;
}

void expect_same(const Training& a, const Training& b, const std::string& what) {
  for (size_t i = 0; i < a.losses.size(); ++i)
    EXPECT_NEAR(a.losses[i], b.losses[i], 1e-6 * (1 + std::abs(b.losses[i])))
        << what << ", step " << i;
  EXPECT_NEAR(a.test_loss, b.test_loss, 1e-6 * (1 + std::abs(b.test_loss))) << what << ", test";
}

TEST(SameLosses, WithAndWithoutEachPass) {
  const auto names = local_pass_names();
  for (const Net& net : nets()) {
    const Training all = train(net, {});
    EXPECT_LT(all.losses.back(), all.losses.front()) << net.name << " does not learn";
    expect_same(train(net, {names.begin(), names.end()}), all, str(net.name, " without passes"));
    for (const std::string& name : names)
      expect_same(train(net, {name}), all, str(net.name, " without ", name));
  }
}

// Else the test above shows nothing.
TEST(SameLosses, EveryFusionFindsSomething) {
  std::set<std::string> found;
  for (const Net& net : nets())
    for (const Report& report : train(net, {}).reports)
      if (report.ops_after < report.ops_before) found.insert(report.name);
  for (const std::string& name : local_pass_names())
    EXPECT_TRUE(!name.starts_with("fuse_") || found.contains(name)) << name;
}

}  // namespace
}  // namespace fleetx::passes
