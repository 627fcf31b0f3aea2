#include <cmath>

#include "tests/optimizers/optimizer_case.h"

namespace fleetx::testing {
namespace {

const AddOptimizer adadelta({.op = "adadelta",
                             .attrs = {{"rho", 0.9}, {"epsilon", 1e-3}},
                             .states = {"avg_squared_grad", "avg_squared_update"},
                             .rule = [](Update& u) {
                               for (size_t i = 0; i < u.p.size(); ++i) {
                                 u.s[0][i] = 0.9 * u.s[0][i] + 0.1 * u.g[i] * u.g[i];
                                 const double d =
                                     -std::sqrt((u.s[1][i] + 1e-3) / (u.s[0][i] + 1e-3)) * u.g[i];
                                 u.s[1][i] = 0.9 * u.s[1][i] + 0.1 * d * d;
                                 u.p[i] += u.lr * d;
                               }
                             }});

}  // namespace
}  // namespace fleetx::testing
