#include <cmath>

#include "tests/optimizers/optimizer_case.h"

namespace fleetx::testing {
namespace {

const AddOptimizer adamax({.op = "adamax",
                           .attrs = {{"beta1", 0.8}, {"beta2", 0.99}, {"epsilon", 1e-6}},
                           .states = {"moment", "inf_norm"},
                           .rule =
                               [](Update& u) {
                                 for (size_t i = 0; i < u.p.size(); ++i) {
                                   u.s[0][i] = 0.8 * u.s[0][i] + 0.2 * u.g[i];
                                   u.s[1][i] = std::max(0.99 * u.s[1][i], std::fabs(u.g[i]));
                                   const double m = u.s[0][i] / (1 - u.beta1_pow);
                                   u.p[i] -= u.lr * m / (u.s[1][i] + 1e-6);
                                 }
                               },
                           .beta1 = 0.8,
                           .beta2 = 0.99});

}  // namespace
}  // namespace fleetx::testing
