#include "tests/optimizers/optimizer_case.h"

namespace fleetx::testing {
namespace {

const AddOptimizer momentum(
    {.op = "momentum", .attrs = {{"mu", 0.8}}, .states = {"velocity"}, .rule = [](Update& u) {
       for (size_t i = 0; i < u.p.size(); ++i) {
         u.s[0][i] = 0.8 * u.s[0][i] + u.g[i];
         u.p[i] -= u.lr * u.s[0][i];
       }
     }});

const AddCases nesterov("momentum", [](Cases& c) {
  c.add({.label = "nesterov",
         .inputs = {OpInput("param", random({40})).state(), OpInput("grad", random({40}, 1)),
                    OpInput("velocity", random({40}, 2)).state(), OpInput("lr", filled({1}, 0.1f))},
         .attrs = {{"mu", 0.9}, {"nesterov", true}},
         .updates = {{"param_out", "param"}, {"velocity_out", "velocity"}},
         .reference = [](const Tensors& in) -> Tensors {
           const Tensor v = zip(in[2], in[1], [](float v0, float g) { return 0.9f * v0 + g; });
           const Tensor change = zip(v, in[1], [](float v1, float g) { return g + 0.9f * v1; });
           return {zip(in[0], change, [](float p, float d) { return p - 0.1f * d; }), v};
         }});
});

}  // namespace
}  // namespace fleetx::testing
