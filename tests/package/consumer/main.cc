// Trains a small network with the installed library: it learns to tell which half of its input is
// larger. Exits with 0 if the loss falls and the program's text reads back.
#include <iostream>

#include "fleetx/base/rng.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/runtime/executor.h"

using namespace fleetx;

int main() {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 8});
  const ir::Var label = b.data("label", i64, {-1, 1});
  const ir::Var logits = nn::fc(nn::fc(x, {.size = 16, .act = "relu"}), {.size = 2});
  const ir::Var loss = nn::mean(nn::softmax_cross_entropy(logits, label));
  optim::Adam({.lr = 0.01}).minimize(loss);

  Tensor values(f32, {64, 8}), labels(i64, {64, 1});
  const Philox random(1, 0);
  for (size_t row = 0; row < 64; ++row) {
    float difference = 0;
    for (size_t i = 0; i < 8; ++i) {
      const float v = random.uniform(row * 8 + i);
      values.data<float>()[row * 8 + i] = v;
      difference += i < 4 ? v : -v;
    }
    labels.data<int64_t>()[row] = difference > 0;
  }

  runtime::Scope scope;
  runtime::Executor exe;
  exe.run(startup, scope);
  float first = 0, last = 0;
  for (int step = 0; step < 100; ++step) {
    last = exe.run(main, scope, {{"x", values}, {"label", labels}}, {loss.name()})[0].item<float>();
    if (step == 0) first = last;
  }
  const bool same = ir::parse_text(ir::to_text(main)) == main;
  std::cout << "loss " << first << " -> " << last
            << (same ? "\n" : ", the text does not read back\n");
  return last < 0.5f * first && same ? 0 : 1;
}
