#include <cmath>

#include "tests/optimizers/optimizer_case.h"

namespace fleetx::testing {
namespace {

const AddOptimizer decayed_adagrad({.op = "decayed_adagrad",
                                    .attrs = {{"decay", 0.8}, {"epsilon", 1e-3}},
                                    .states = {"moment"},
                                    .rule = [](Update& u) {
                                      for (size_t i = 0; i < u.p.size(); ++i) {
                                        u.s[0][i] = 0.8 * u.s[0][i] + 0.2 * u.g[i] * u.g[i];
                                        u.p[i] -= u.lr * u.g[i] / (std::sqrt(u.s[0][i]) + 1e-3);
                                      }
                                    }});

}  // namespace
}  // namespace fleetx::testing
