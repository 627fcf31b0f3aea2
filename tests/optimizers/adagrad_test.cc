#include <cmath>

#include "tests/optimizers/optimizer_case.h"

namespace fleetx::testing {
namespace {

const AddOptimizer adagrad(
    {.op = "adagrad", .attrs = {{"epsilon", 1e-4}}, .states = {"moment"}, .rule = [](Update& u) {
       for (size_t i = 0; i < u.p.size(); ++i) {
         u.s[0][i] += u.g[i] * u.g[i];
         u.p[i] -= u.lr * u.g[i] / (std::sqrt(u.s[0][i]) + 1e-4);
       }
     }});

}  // namespace
}  // namespace fleetx::testing
