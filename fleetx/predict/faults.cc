#include "fleetx/predict/faults.h"

#include <cmath>

#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"

namespace fleetx::predict {
namespace {

void check(const FaultModel& m) {
  check_arg(m.hosts >= 1, "a job has at least one host, not ", m.hosts);
  check_arg(m.failures.mtbf_s > 0,
            "how often hosts fail is not known: the machine's description has no `failures`");
}

}  // namespace

Efficiency simulate_faults(const FaultModel& m, double interval_s, int failures) {
  check(m);
  check_arg(interval_s > 0, "the time between two checkpoints is ", interval_s,
            " s; must be positive");
  const Philox random(m.seed, 0);
  uint64_t drawn = 0;
  const auto until_failure = [&] { return -m.mtbf_s() * std::log1p(-random.uniform(drawn++)); };
  const double segment = interval_s + m.failures.checkpoint_s;
  double time = 0, kept = 0;
  for (int i = 0; i < failures; ++i) {
    const double life = until_failure();
    kept += std::floor(life / segment) * interval_s;
    time += life;
    // A failure during the restart begins it anew.
    while (true) {
      const double next = until_failure();
      time += std::min(next, m.failures.restart_s);
      if (next >= m.failures.restart_s) break;
    }
  }
  return {interval_s, time > 0 ? kept / time : 0};
}

Efficiency expected(const FaultModel& m, double interval_s) {
  check(m);
  const double mtbf = m.mtbf_s();
  const double segment = mtbf * std::exp(m.failures.restart_s / mtbf) *
                         std::expm1((interval_s + m.failures.checkpoint_s) / mtbf);
  return {interval_s, std::isfinite(segment) ? interval_s / segment : 0};
}

// The expectation rises, then falls: a search that narrows the interval in logarithms.
Efficiency best_interval(const FaultModel& m) {
  check(m);
  double low = std::log(1e-3), high = std::log(20 * m.mtbf_s() + 1);
  const double ratio = (std::sqrt(5.0) - 1) / 2;
  for (int i = 0; i < 200; ++i) {
    const double a = high - ratio * (high - low), b = low + ratio * (high - low);
    if (expected(m, std::exp(a)).useful < expected(m, std::exp(b)).useful)
      low = a;
    else
      high = b;
  }
  return simulate_faults(m, std::exp((low + high) / 2));
}

double young_interval(const FaultModel& m) {
  check(m);
  return std::sqrt(2 * m.failures.checkpoint_s * m.mtbf_s());
}

}  // namespace fleetx::predict
