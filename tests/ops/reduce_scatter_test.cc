#include <gtest/gtest.h>

#include "tests/ops/collective_case.h"

namespace fleetx::testing {
namespace {

CollectiveCase reduce_scatter(const std::string& op,
                              const std::function<double(double, double)>& fn,
                              bool average = false) {
  return {.op = "reduce_scatter",
          .attrs = {{"op", op}},
          .gives_ranks = true,
          .reads_late = true,
          .reference = [=](const Values& of, int rank) {
            const Value all = combine(of, fn);
            const size_t part = all.size() / of.size();
            Value out(all.begin() + static_cast<long>(part) * rank,
                      all.begin() + static_cast<long>(part) * (rank + 1));
            if (average)
              for (double& v : out) v /= static_cast<double>(of.size());
            return out;
          }};
}

TEST(ReduceScatter, Sum) { check_collective(reduce_scatter("sum", std::plus<double>())); }

TEST(ReduceScatter, Average) {
  CollectiveCase c = reduce_scatter("average", std::plus<double>(), true);
  c.dtypes = {f32, bf16, f16, f64};
  check_collective(c);
}

TEST(ReduceScatter, Max) {
  CollectiveCase c = reduce_scatter("max", [](double a, double b) { return std::max(a, b); });
  c.gradient = false;
  check_collective(c);
}

}  // namespace
}  // namespace fleetx::testing
