// A small network with dropout and momentum, for tests of saving and training: everything that a
// resumed run must restore is in it.
#pragma once

#include <memory>

#include "fleetx/autograd/backward.h"
#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"
#include "fleetx/data/dataset.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/optim/schedule.h"

namespace fleetx::train {

inline constexpr auto kArgument = Error::Kind::kInvalidArgument;

struct Toy {
  ir::Program main, startup;
  ir::Builder b{main, startup};
  ir::Var logits, loss, accuracy;
  static constexpr int64_t kWidth = 4;  // of x

  explicit Toy(int64_t hidden = 8) {
    const ir::Var x = b.data("x", f32, {-1, kWidth}), label = b.data("label", i64, {-1, 1});
    ir::Var h = nn::fc(x, {.size = hidden, .act = "relu"});
    h = nn::dropout(h, {.p = 0.25});
    logits = nn::fc(h, {.size = 3});
    loss = nn::mean(nn::softmax_cross_entropy(logits, label));
    accuracy = nn::accuracy(logits, label);
    update();
  }

 private:
  void update() {
    std::vector<ir::Var> params, grads, velocities;
    ir::Names param_names, velocity_names;
    for (const auto& [param, grad] : autograd::append_backward(loss)) {
      params.push_back(param);
      grads.push_back(grad);
      velocities.push_back(b.state(param.name() + ".velocity", f32, param.shape()));
      param_names.push_back(param.name());
      velocity_names.push_back(velocities.back().name());
    }
    const auto role = b.in_role(ir::Role::kUpdate);
    b.op("momentum",
         {{"param", params},
          {"grad", grads},
          {"velocity", velocities},
          {"lr", b.state("lr", f32, {1}, 0.1)}},
         {}, {{"param_out", param_names}, {"velocity_out", velocity_names}});
    b.op("increment", {{"x", b.step()}}, {}, {{"out", b.step()}});
  }
};

// The same for images of 8x8: convolutions, batch norm, and adam with a schedule.
struct ConvToy {
  ir::Program main, startup;
  ir::Builder b{main, startup};
  ir::Var loss, accuracy;
  static constexpr int64_t kWidth = 64;

  ConvToy() {
    const ir::Var x = b.data("x", f32, {-1, kWidth}), label = b.data("label", i64, {-1, 1});
    ir::Var h = nn::reshape(x, {0, 1, 8, 8});
    for (const int64_t filters : {16, 32}) {
      h = nn::conv2d(h, {.filters = filters, .kernel = 3, .padding = 1, .bias = false});
      h = nn::batch_norm(h, {.act = "relu"});
      h = nn::dropout(h, {.p = 0.2});
    }
    const ir::Var logits = nn::fc(nn::pool2d(h, {.kernel = 2, .stride = 2}), {.size = 3});
    loss = nn::mean(nn::softmax_cross_entropy(logits, label));
    accuracy = nn::accuracy(logits, label);
    const ir::Var lr = optim::warm_up(optim::cosine(b, 0.01, 13, 4), 10, 0.0, 0.01);
    optim::Adam({.lr = lr, .l2 = 1e-4}).minimize(loss);
  }
};

// Three classes around three points.
inline std::shared_ptr<data::Dataset> toy_data(int64_t n, uint64_t seed = 1,
                                               int64_t width = Toy::kWidth) {
  Tensor x(f32, {n, width}), label(i64, {n, 1});
  const Philox random(seed, 0);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t kind = i % 3;
    label.data<int64_t>()[static_cast<size_t>(i)] = kind;
    for (int64_t j = 0; j < width; ++j)
      x.data<float>()[static_cast<size_t>(i * width + j)] =
          (j == kind ? 1.5f : 0.0f) + 0.7f * random.normal(static_cast<uint64_t>(i * width + j));
  }
  return std::make_shared<data::TensorDataset>(
      std::map<std::string, Tensor>{{"x", x}, {"label", label}});
}

}  // namespace fleetx::train
