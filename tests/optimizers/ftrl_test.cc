#include <cmath>

#include "tests/optimizers/optimizer_case.h"

namespace fleetx::testing {
namespace {

void ftrl(double& p, double g, double lr, double& squared, double& linear, double power) {
  constexpr double kL1 = 0.3, kL2 = 0.2;
  const double sum = squared + g * g;
  linear += g - (std::pow(sum, -power) - std::pow(squared, -power)) / lr * p;
  squared = sum;
  const double sign = linear > 0 ? 1 : -1;
  p = std::abs(linear) > kL1 ? (kL1 * sign - linear) / (std::pow(sum, -power) / lr + 2 * kL2) : 0;
}

// The padding test of optimizer_test.cc counts zeros, so this one has no shrinkage to zero.
const AddOptimizer unshrunk(
    {.op = "ftrl", .attrs = {}, .states = {"squared", "linear"}, .rule = [](Update& u) {
       for (size_t i = 0; i < u.p.size(); ++i) {
         const double sum = u.s[0][i] + u.g[i] * u.g[i];
         u.s[1][i] += u.g[i] - (std::sqrt(sum) - std::sqrt(u.s[0][i])) / u.lr * u.p[i];
         u.s[0][i] = sum;
         u.p[i] = -u.s[1][i] / (std::sqrt(sum) / u.lr);
       }
     }});

OpCase shrinking(const std::string& label, double power) {
  return {.label = label,
          .inputs = {OpInput("param", random({200})).state(), OpInput("grad", random({200}, 1)),
                     OpInput("squared", random({200}, 2, 0.1f, 1.0f)).state(),
                     OpInput("linear", random({200}, 3)).state(), OpInput("lr", filled({1}, 0.1f))},
          .attrs = {{"shrink_l1", 0.3}, {"shrink_l2", 0.2}, {"lr_power", power}},
          .updates = {{"param_out", "param"}, {"squared_out", "squared"}, {"linear_out", "linear"}},
          .reference = [power](const Tensors& in) -> Tensors {
            Tensors out = {in[0].clone(), in[2].clone(), in[3].clone()};
            for (size_t i = 0; i < 200; ++i) {
              double p = out[0].data<float>()[i], s = out[1].data<float>()[i],
                     l = out[2].data<float>()[i];
              ftrl(p, in[1].data<float>()[i], 0.1, s, l, power);
              out[0].data<float>()[i] = static_cast<float>(p);
              out[1].data<float>()[i] = static_cast<float>(s);
              out[2].data<float>()[i] = static_cast<float>(l);
            }
            return out;
          }};
}

const AddCases shrunk("ftrl", [](Cases& c) {
  c.add(shrinking("shrinks", -0.5));
  c.add(shrinking("other_power", -0.7));
});

}  // namespace
}  // namespace fleetx::testing
