#include <cmath>

#include "tests/optimizers/optimizer_case.h"

namespace fleetx::testing {
namespace {

const AddOptimizer centered(
    {.op = "rmsprop",
     .attrs = {{"rho", 0.9}, {"epsilon", 1e-3}, {"momentum", 0.5}, {"centered", true}},
     .states = {"mean_square", "moment", "mean_grad"},
     .rule = [](Update& u) {
       for (size_t i = 0; i < u.p.size(); ++i) {
         u.s[0][i] = 0.9 * u.s[0][i] + 0.1 * u.g[i] * u.g[i];
         u.s[2][i] = 0.9 * u.s[2][i] + 0.1 * u.g[i];
         const double variance = std::max(0.0, u.s[0][i] - u.s[2][i] * u.s[2][i]);
         u.s[1][i] = 0.5 * u.s[1][i] + u.lr * u.g[i] / std::sqrt(variance + 1e-3);
         u.p[i] -= u.s[1][i];
       }
     }});

const AddCases plain("rmsprop", [](Cases& c) {
  c.add(
      {.label = "not_centered",
       .inputs = {OpInput("param", random({40})).state(), OpInput("grad", random({40}, 1)),
                  OpInput("mean_square", random({40}, 2, 0.1f, 1.0f)).state(),
                  OpInput("moment", random({40}, 3)).state(),
                  OpInput("mean_grad", random({40}, 4)).state(), OpInput("lr", filled({1}, 0.1f))},
       .attrs = {{"rho", 0.9}, {"epsilon", 1e-3}},
       .updates = {{"param_out", "param"},
                   {"mean_square_out", "mean_square"},
                   {"moment_out", "moment"},
                   {"mean_grad_out", "mean_grad"}},
       .reference = [](const Tensors& in) -> Tensors {
         const Tensor square =
             zip(in[2], in[1], [](float s, float g) { return 0.9f * s + 0.1f * g * g; });
         const Tensor change =
             zip(in[1], square, [](float g, float s) { return 0.1f * g / std::sqrt(s + 1e-3f); });
         return {zip(in[0], change, [](float p, float d) { return p - d; }), square, change, in[4]};
       }});
});

}  // namespace
}  // namespace fleetx::testing
