#include "tests/optimizers/optimizer_case.h"

namespace fleetx::testing {
namespace {

void lars(Update& u, double decay, bool nesterov = false) {
  const double p = norm(u.p), g = norm(u.g);
  const double lr = decay > 0 && p > 0 && g > 0 ? u.lr * 0.02 * p / (g + decay * p + 1e-9) : u.lr;
  for (size_t i = 0; i < u.p.size(); ++i) {
    const double d = lr * (u.g[i] + decay * u.p[i]);
    u.s[0][i] = 0.9 * u.s[0][i] + d;
    u.p[i] -= nesterov ? d + 0.9 * u.s[0][i] : u.s[0][i];
  }
}

const ir::Attrs kAttrs = {
    {"mu", 0.9}, {"lars_coeff", 0.02}, {"lars_weight_decay", 0.05}, {"epsilon", 1e-9}};

const AddOptimizer with_norms({.op = "lars_momentum",
                               .attrs = kAttrs,
                               .states = {"velocity"},
                               .rule = [](Update& u) { lars(u, 0.05); },
                               .sparse = false});

const AddCases nesterov("lars_momentum", [](Cases& c) {
  ir::Attrs attrs = kAttrs;
  attrs.emplace("nesterov", true);
  c.add({.label = "nesterov",
         .inputs = {OpInput("param", random({40})).state(), OpInput("grad", random({40}, 1)),
                    OpInput("velocity", random({40}, 2)).state(), OpInput("lr", filled({1}, 0.1f))},
         .attrs = attrs,
         .updates = {{"param_out", "param"}, {"velocity_out", "velocity"}},
         .reference = [](const Tensors& in) -> Tensors {
           Update u{};
           u.lr = static_cast<double>(0.1f);
           for (const float p : in[0].data<float>()) u.p.push_back(p);
           for (const float g : in[1].data<float>()) u.g.push_back(g);
           u.s.emplace_back(in[2].data<float>().begin(), in[2].data<float>().end());
           lars(u, 0.05, true);
           return {Tensor::of<float>({40}, {u.p.begin(), u.p.end()}),
                   Tensor::of<float>({40}, {u.s[0].begin(), u.s[0].end()})};
         }});
});

// The first parameter is excluded, the gradient of the second is zero: both have the plain rate.
const AddCases plain("lars_momentum", [](Cases& c) {
  ir::Attrs attrs = kAttrs;
  attrs.emplace("with_decay", ir::Floats{0, 1});
  c.add({.label = "plain_rate",
         .inputs = {OpInput("param", {random({9}), random({5}, 1)}).state(),
                    OpInput("grad", {random({9}, 2), filled({5}, 0.0f)}),
                    OpInput("velocity", {filled({9}, 0.0f), filled({5}, 0.0f)}).state(),
                    OpInput("lr", filled({1}, 0.1f))},
         .attrs = attrs,
         .updates = {{"param_out", "param"}, {"velocity_out", "velocity"}},
         .reference = [](const Tensors& in) -> Tensors {
           const Tensor v = map(in[2], [](float g) { return 0.1f * g; });
           const Tensor w = map(in[1], [](float p) { return 0.1f * 0.05f * p; });
           const auto minus = [](float a, float b) { return a - b; };
           return {zip(in[0], v, minus), zip(in[1], w, minus), v, w};
         }});
});

}  // namespace
}  // namespace fleetx::testing
