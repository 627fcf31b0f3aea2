// What the tests of optimizer ops share: each test file gives a spec with a plain reference over
// double, optimizer_test.cc makes op cases of it and runs it for several steps, dense and sparse.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/op_case.h"

namespace fleetx::testing {

// One parameter (or one row of a sparse one) before and after a step. g has its scale and decay, lr
// its factor.
struct Update {
  std::vector<double> p, g;
  std::vector<std::vector<double>> s;  // the states, in the order of the spec
  double lr, beta1_pow, beta2_pow;
};

struct OptimizerSpec {
  std::string op;
  ir::Attrs attrs;
  std::vector<std::string> states;
  std::function<void(Update&)> rule;
  double beta1 = 0, beta2 = 0;  // not 0: has beta1_pow and beta2_pow
  bool sparse = true;
};

inline double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

struct AddOptimizer {
  explicit AddOptimizer(const OptimizerSpec& spec);
};

}  // namespace fleetx::testing
