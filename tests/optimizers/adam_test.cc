#include <cmath>

#include "tests/optimizers/optimizer_case.h"

namespace fleetx::testing {
namespace {

void adam(Update& u, double decay) {
  for (size_t i = 0; i < u.p.size(); ++i) {
    u.p[i] -= u.lr * decay * u.p[i];
    u.s[0][i] = 0.8 * u.s[0][i] + 0.2 * u.g[i];
    u.s[1][i] = 0.99 * u.s[1][i] + 0.01 * u.g[i] * u.g[i];
    const double m = u.s[0][i] / (1 - u.beta1_pow), v = u.s[1][i] / (1 - u.beta2_pow);
    u.p[i] -= u.lr * m / (std::sqrt(v) + 1e-6);
  }
}

const AddOptimizer plain({.op = "adam",
                          .attrs = {{"beta1", 0.8}, {"beta2", 0.99}, {"epsilon", 1e-6}},
                          .states = {"moment1", "moment2"},
                          .rule = [](Update& u) { adam(u, 0.0); },
                          .beta1 = 0.8,
                          .beta2 = 0.99});

const AddOptimizer decayed(
    {.op = "adamw",
     .attrs = {{"beta1", 0.8}, {"beta2", 0.99}, {"epsilon", 1e-6}, {"coeff", 0.3}},
     .states = {"moment1", "moment2"},
     .rule = [](Update& u) { adam(u, 0.3); },
     .beta1 = 0.8,
     .beta2 = 0.99});

// Zero gradients and moments leave only the decay, of the parameters that have it.
const AddCases with_decay("adamw", [](Cases& c) {
  const auto pair = [](float value) { return Tensors{filled({4}, value), filled({3}, value)}; };
  const Tensors pows = {filled({1}, 0.9f), filled({1}, 0.9f)};
  c.add({.label = "with_decay",
         .inputs = {OpInput("param", pair(2.0f)).state(), OpInput("grad", pair(0.0f)),
                    OpInput("moment1", pair(0.0f)).state(), OpInput("moment2", pair(0.0f)).state(),
                    OpInput("beta1_pow", pows).state(), OpInput("beta2_pow", pows).state(),
                    OpInput("lr", filled({1}, 0.5f))},
         .attrs = {{"coeff", 0.1}, {"with_decay", ir::Floats{0, 1}}},
         .updates = {{"param_out", "param"},
                     {"moment1_out", "moment1"},
                     {"moment2_out", "moment2"},
                     {"beta1_pow_out", "beta1_pow"},
                     {"beta2_pow_out", "beta2_pow"}},
         .reference = [](const Tensors&) -> Tensors {
           return {filled({4}, 2.0f),          filled({3}, 2.0f - 0.5f * 0.1f * 2.0f),
                   filled({4}, 0.0f),          filled({3}, 0.0f),
                   filled({4}, 0.0f),          filled({3}, 0.0f),
                   filled({1}, 0.9f * 0.9f),   filled({1}, 0.9f * 0.9f),
                   filled({1}, 0.9f * 0.999f), filled({1}, 0.9f * 0.999f)};
         }});
});

}  // namespace
}  // namespace fleetx::testing
