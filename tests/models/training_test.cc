// Small versions of every model learn a handful of examples by heart, and twice the same way.
#include <gtest/gtest.h>

#include <functional>

#include "fleetx/base/rng.h"
#include "fleetx/models/bert.h"
#include "fleetx/models/lenet.h"
#include "fleetx/models/mlp.h"
#include "fleetx/models/resnet.h"
#include "fleetx/models/wide_deep.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/runtime/executor.h"

namespace fleetx::models {
namespace {

struct Job {
  ir::Program main, startup;
  ir::Builder b{main, startup};
  runtime::Feeds feeds;

  Var floats(const std::string& name, const Shape& shape) {
    Tensor t(f32, shape);
    const Philox random(3, stable_hash(name));
    uint64_t i = 0;
    for (float& x : t.data<float>()) x = random.normal(i++);
    feeds.emplace_back(name, std::move(t));
    return b.data(name, f32, shape);
  }
  Var ints(const std::string& name, const Shape& shape, uint32_t below) {
    Tensor t(i64, shape);
    const Philox random(3, stable_hash(name));
    uint64_t i = 0;
    for (int64_t& x : t.data<int64_t>()) x = random.bits(i++) % below;
    feeds.emplace_back(name, std::move(t));
    return b.data(name, i64, shape);
  }
};

using LossOf = std::function<Var(Job&)>;  // gives the loss

std::vector<float> losses(const LossOf& build, int steps) {
  Job job;
  const Var loss = build(job);
  optim::Adam({.lr = 0.003}).minimize(loss);
  runtime::Scope scope;
  runtime::Executor exe;
  exe.run(job.startup, scope);
  std::vector<float> out;
  for (int i = 0; i < steps; ++i)
    out.push_back(exe.run(job.main, scope, job.feeds, {loss.name()})[0].item<float>());
  return out;
}

void expect_learns(const LossOf& build, int steps = 30) {
  const std::vector<float> first = losses(build, steps);
  EXPECT_LT(first.back(), 0.5f * first.front());
  EXPECT_EQ(losses(build, 3), std::vector<float>(first.begin(), first.begin() + 3));
}

Var classify(Job& job, const Network& net) {
  const Shape& s = net.logits.shape();
  return nn::mean(nn::softmax_cross_entropy(
      net.logits, job.ints("label", {s[0], 1}, static_cast<uint32_t>(s[1]))));
}

TEST(Training, Mlp) {
  expect_learns([](Job& j) { return classify(j, mlp(j.floats("x", {8, 20}), {.hidden = {32}})); });
}

TEST(Training, LeNet) {
  expect_learns([](Job& j) { return classify(j, lenet(j.floats("image", {8, 1, 28, 28}))); });
}

TEST(Training, ResNet18) {
  expect_learns([](Job& j) {
    return classify(j, resnet(j.floats("image", {8, 3, 32, 32}),
                              {.depth = 18, .classes = 4, .width = 8, .small_images = true}));
  });
}

TEST(Training, ResNet50) {
  expect_learns([](Job& j) {
    return classify(
        j, resnet(j.floats("image", {4, 3, 64, 64}), {.depth = 50, .classes = 4, .width = 8}));
  });
}

TEST(Training, Bert) {
  expect_learns(
      [](Job& j) {
        return bert_pretraining({.words = j.ints("words", {4, 12}, 40),
                                 .sentences = j.ints("sentences", {4, 12}, 2),
                                 .mask = j.floats("mask", {4, 1, 1, 12})},
                                {.positions = j.ints("positions", {8}, 48),
                                 .words = j.ints("targets", {8, 1}, 40),
                                 .follows = j.ints("follows", {4, 1}, 2)},
                                {.vocabulary = 40,
                                 .hidden = 16,
                                 .layers = 2,
                                 .heads = 2,
                                 .intermediate = 32,
                                 .max_positions = 12,
                                 .dropout = 0.1,
                                 .init_std = 0.1})
            .loss;
      },
      60);
}

TEST(Training, WideDeep) {
  expect_learns([](Job& j) {
    const Var label = nn::cast(j.ints("label", {8, 1}, 2), f32);
    return wide_deep(j.floats("dense", {8, 13}), j.ints("ids", {8, 26}, 100), label,
                     {.rows = 100, .dim = 4, .hidden = {16, 16}})
        .loss;
  });
}

}  // namespace
}  // namespace fleetx::models
