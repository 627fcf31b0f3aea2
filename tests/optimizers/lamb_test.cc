#include <cmath>

#include "tests/optimizers/optimizer_case.h"

namespace fleetx::testing {
namespace {

void lamb(Update& u, double decay) {
  std::vector<double> r(u.p.size());
  for (size_t i = 0; i < u.p.size(); ++i) {
    u.s[0][i] = 0.8 * u.s[0][i] + 0.2 * u.g[i];
    u.s[1][i] = 0.99 * u.s[1][i] + 0.01 * u.g[i] * u.g[i];
    const double m = u.s[0][i] / (1 - u.beta1_pow), v = u.s[1][i] / (1 - u.beta2_pow);
    r[i] = m / (std::sqrt(v) + 1e-6) + decay * u.p[i];
  }
  const double trust = norm(u.p) > 0 && norm(r) > 0 ? norm(u.p) / norm(r) : 1.0;
  for (size_t i = 0; i < u.p.size(); ++i) u.p[i] -= u.lr * trust * r[i];
}

const ir::Attrs kAttrs = {
    {"beta1", 0.8}, {"beta2", 0.99}, {"epsilon", 1e-6}, {"weight_decay", 0.1}};

const AddOptimizer with_norms({.op = "lamb",
                               .attrs = kAttrs,
                               .states = {"moment1", "moment2"},
                               .rule = [](Update& u) { lamb(u, 0.1); },
                               .beta1 = 0.8,
                               .beta2 = 0.99,
                               .sparse = false});

// A parameter that is zero has the factor 1; an excluded one has no decay.
const AddCases special("lamb", [](Cases& c) {
  ir::Attrs attrs = kAttrs;
  attrs.emplace("with_decay", ir::Floats{1, 0});
  const Tensors zeros = {filled({6}, 0.0f), filled({9}, 0.0f)};
  c.add({.label = "zero_and_excluded",
         .inputs = {OpInput("param", {filled({6}, 0.0f), random({9}, 1)}).state(),
                    OpInput("grad", {random({6}, 2), random({9}, 3)}),
                    OpInput("moment1", zeros).state(), OpInput("moment2", zeros).state(),
                    OpInput("beta1_pow", {filled({1}, 0.8f), filled({1}, 0.8f)}).state(),
                    OpInput("beta2_pow", {filled({1}, 0.99f), filled({1}, 0.99f)}).state(),
                    OpInput("lr", filled({1}, 0.1f))},
         .attrs = attrs,
         .updates = {{"param_out", "param"},
                     {"moment1_out", "moment1"},
                     {"moment2_out", "moment2"},
                     {"beta1_pow_out", "beta1_pow"},
                     {"beta2_pow_out", "beta2_pow"}},
         .reference = [](const Tensors& in) -> Tensors {
           Tensors out;
           for (size_t k = 0; k < 2; ++k) {
             const auto p = in[k].data<float>(), g = in[2 + k].data<float>();
             Update u{{p.begin(), p.end()}, {g.begin(), g.end()}, {}, 0.1, 0.8, 0.99};
             u.s.assign(2, std::vector<double>(p.size()));
             lamb(u, k == 0 ? 0.1 : 0.0);
             out.push_back(Tensor(f32, in[k].shape()));
             for (size_t i = 0; i < p.size(); ++i)
               out.back().data<float>()[i] = static_cast<float>(u.p[i]);
           }
           return out;
         }});
});

}  // namespace
}  // namespace fleetx::testing
