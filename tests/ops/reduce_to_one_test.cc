// The collective `reduce`. (reduce_test.cc is about reduce_sum and its family.)
#include <gtest/gtest.h>

#include "tests/ops/collective_case.h"

namespace fleetx::testing {
namespace {

CollectiveCase reduce(int root, const std::string& op,
                      const std::function<double(double, double)>& fn) {
  return {.op = "reduce",
          .attrs = {{"root", root}, {"op", op}},
          .in_place = true,
          .reference = [=](const Values& of, int rank) {
            return rank == root ? combine(of, fn) : Value(of.front().size(), 0.0);
          }};
}

TEST(ReduceToOne, SumAtTheRootAndZerosElsewhere) {
  check_collective(reduce(0, "sum", std::plus<double>()));
}

TEST(ReduceToOne, AtAnotherRoot) {
  for (const int ranks : {2, 3, 4}) {
    const CollectiveCase c = reduce(ranks - 1, "sum", std::plus<double>());
    check_forward(c, ranks, f32);
    check_in_place(c, ranks, f16);
    check_gradient(c, ranks);
  }
}

TEST(ReduceToOne, Max) {
  CollectiveCase c = reduce(0, "max", [](double a, double b) { return std::max(a, b); });
  c.gradient = false;
  check_collective(c);
}

}  // namespace
}  // namespace fleetx::testing
