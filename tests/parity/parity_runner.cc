// Trains a model for some steps and writes all that another framework needs to repeat it, and to be
// compared with: one safetensors file with weights/<parameter> (before step 1), feeds/<input>,
// grads/<parameter> (of step 1) and losses.
// usage: parity_runner resnet50|bert FILE [STEPS]
#include <iostream>

#include "fleetx/autograd/backward.h"
#include "fleetx/models/bert.h"
#include "fleetx/models/resnet.h"
#include "fleetx/nn/loss.h"
#include "fleetx/nn/math.h"
#include "fleetx/runtime/executor.h"
#include "fleetx/tensor/safetensors.h"

namespace fleetx {
namespace {

constexpr double kRate = 1e-4, kMomentum = 0.9;

Tensor normal(const Shape& shape, std::string_view what) {
  Tensor out(f32, shape);
  const Philox random(1, stable_hash(what));
  for (uint64_t i = 0; float& v : out.data<float>()) v = random.normal(i++);
  return out;
}

Tensor integers(const Shape& shape, int64_t below, std::string_view what) {
  Tensor out(i64, shape);
  const Philox random(1, stable_hash(what));
  for (uint64_t i = 0; int64_t & v : out.data<int64_t>())
    v = static_cast<int64_t>(random.bits(i++)) % below;
  return out;
}

ir::Var input(ir::Builder& b, runtime::Feeds& feeds, const std::string& name, Tensor value) {
  const ir::Var v = b.data(name, value.dtype(), value.shape());
  feeds.emplace_back(name, std::move(value));
  return v;
}

ir::Var resnet50(ir::Builder& b, runtime::Feeds& feeds) {
  constexpr int64_t kBatch = 8, kSize = 64, kClasses = 100;
  const ir::Var image = input(b, feeds, "image", normal({kBatch, 3, kSize, kSize}, "image"));
  const ir::Var label = input(b, feeds, "label", integers({kBatch, 1}, kClasses, "label"));
  return nn::mean(
      nn::softmax_cross_entropy(models::resnet(image, {.classes = kClasses}).logits, label));
}

ir::Var bert(ir::Builder& b, runtime::Feeds& feeds) {
  constexpr int64_t kBatch = 4, kLength = 32, kWords = 1000, kHidden = 20;
  Tensor mask(f32, {kBatch, 1, 1, kLength});  // the last example is shorter
  for (int64_t i = kLength / 2; i < kLength; ++i)
    mask.data<float>()[static_cast<size_t>((kBatch - 1) * kLength + i)] = -10000.0f;
  const models::BertInputs in{
      .words = input(b, feeds, "words", integers({kBatch, kLength}, kWords, "words")),
      .sentences = input(b, feeds, "sentences", integers({kBatch, kLength}, 2, "sentences")),
      .mask = input(b, feeds, "mask", mask)};
  const models::BertTargets targets{
      input(b, feeds, "positions", integers({kHidden}, kBatch * kLength, "positions")),
      input(b, feeds, "hidden_words", integers({kHidden, 1}, kWords, "hidden_words")),
      input(b, feeds, "follows", integers({kBatch, 1}, 2, "follows"))};
  return models::bert_pretraining(in, targets,
                                  {.vocabulary = kWords,
                                   .hidden = 128,
                                   .layers = 2,
                                   .heads = 4,
                                   .intermediate = 512,
                                   .max_positions = 64})
      .loss;
}

// Weights at which a gradient is well defined in f32. Norms and biases leave the ones and zeros
// where a wrong gradient would not show. In a residual network the inputs of each relu move away
// from its kink, and the branches get small: at the usual initial values rounding decides which
// side some inputs are on, and PyTorch's own gradients in f32 are 2e-2 off those in f64.
Tensor move(Tensor value, const std::string& name) {
  if (value.shape().rank() != 1) return value;
  const auto ends_with = [&](std::string_view end) {
    return std::string_view(name).ends_with(end);
  };
  const Tensor noise = normal(value.shape(), name);
  for (size_t i = 0; float& v : value.data<float>()) {
    v += 0.1f * noise.data<float>()[i];
    if (ends_with("branch2c_bn.w_0")) v *= 0.2f;
    if (ends_with("branch2c_bn.b_0"))
      v += 1.0f;
    else if (name == "conv1_bn.b_0")
      v -= 1.5f;  // few positive ones, so that max pooling rarely has to choose between near ones
    else if (ends_with("branch1_bn.b_0"))
      v += 3.0f;
    else if (ends_with("_bn.b_0"))
      v += i % 4 == 0 ? -2.0f : 2.0f;
    ++i;
  }
  return value;
}

void append_momentum(ir::Builder& b, const std::vector<autograd::ParamGrad>& pairs) {
  const auto role = b.in_role(ir::Role::kUpdate);
  std::vector<ir::Var> params, grads, velocities;
  ir::Names param_names, velocity_names;
  for (const autograd::ParamGrad& pair : pairs) {
    params.push_back(pair.param);
    grads.push_back(pair.grad);
    velocities.push_back(b.state(pair.param.name() + ".velocity", f32, pair.param.shape()));
    param_names.push_back(pair.param.name());
    velocity_names.push_back(velocities.back().name());
  }
  const ir::Var lr = b.state("lr", f32, {1}, kRate);
  b.op("momentum", {{"param", params}, {"grad", grads}, {"velocity", velocities}, {"lr", lr}},
       {{"mu", kMomentum}}, {{"param_out", param_names}, {"velocity_out", velocity_names}});
}

void run(const std::string& model, const std::string& path, int steps) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  runtime::Feeds feeds;
  check_arg(model == "resnet50" || model == "bert", "unknown model '", model, "'");
  const ir::Var loss = model == "bert" ? bert(b, feeds) : resnet50(b, feeds);
  const auto pairs = autograd::append_backward(loss);
  append_momentum(b, pairs);

  runtime::Scope scope;
  runtime::Executor exe;
  exe.run(startup, scope);
  Safetensors out;
  for (const auto& [name, tensor] : feeds) out.tensors["feeds/" + name] = tensor;
  ir::Names fetch{loss.name()};
  for (const auto& [param, grad] : pairs) {
    const Tensor value = move(scope.get(param.name()), param.name());
    scope.set(param.name(), value);
    out.tensors["weights/" + param.name()] = value;
    fetch.push_back(grad.name());
  }

  std::vector<float> losses;
  std::vector<Tensor> first = exe.run(main, scope, feeds, fetch);
  losses.push_back(first[0].item<float>());
  for (size_t i = 0; i < pairs.size(); ++i)
    out.tensors["grads/" + pairs[i].param.name()] = first[i + 1];
  for (int step = 1; step < steps; ++step)
    losses.push_back(exe.run(main, scope, feeds, {loss.name()})[0].item<float>());
  out.tensors["losses"] = Tensor::of<float>({steps}, losses);
  out.metadata = {{"model", model}, {"lr", str(kRate)}, {"momentum", str(kMomentum)}};
  save_safetensors(path, out);
}

}  // namespace
}  // namespace fleetx

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::cerr << "usage: " << argv[0] << " resnet50|bert FILE [STEPS]\n";
    return 2;
  }
  try {
    fleetx::run(argv[1], argv[2], argc == 4 ? std::stoi(argv[3]) : 10);
  } catch (const std::exception& e) {
    std::cerr << "parity_runner: " << e.what() << '\n';
    return 1;
  }
}
