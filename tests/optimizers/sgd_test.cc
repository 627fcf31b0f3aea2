#include "tests/optimizers/optimizer_case.h"

namespace fleetx::testing {
namespace {

const AddOptimizer sgd({.op = "sgd", .attrs = {}, .states = {}, .rule = [](Update& u) {
                          for (size_t i = 0; i < u.p.size(); ++i) u.p[i] -= u.lr * u.g[i];
                        }});

}  // namespace
}  // namespace fleetx::testing
