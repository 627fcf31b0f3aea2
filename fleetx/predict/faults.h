// A long job on hosts that fail: how much of its time is useful, and how often to write
// checkpoints. The job stands still while it writes one. When any host fails, all work since the
// last complete checkpoint is lost, and the job trains again after a restart, during which hosts
// may fail again.
//
//   const FaultModel model{.hosts = 125, .failures = machine.failures};
//   best_interval(model).interval_s
#pragma once

#include <cstdint>

#include "fleetx/predict/machine.h"

namespace fleetx::predict {

struct FaultModel {
  int hosts = 1;
  Failures failures = {};
  uint64_t seed = 1;

  double mtbf_s() const { return failures.mtbf_s / hosts; }  // of the job
};

struct Efficiency {
  double interval_s = 0;  // of training between two checkpoints
  double useful = 0;      // part of the time in which the job learned what it kept
};

// By simulation: failures come at random, with the rate of the hosts; the seed fixes them. Runs
// until `failures` have come.
Efficiency simulate_faults(const FaultModel& model, double interval_s, int failures = 20'000);
// The same in the mean, by formula (Daly 2006): (interval) / (M e^(R/M) (e^((interval + C)/M) -
// 1)).
Efficiency expected(const FaultModel& model, double interval_s);
// The interval with the highest expectation; `useful` is that of the simulation.
Efficiency best_interval(const FaultModel& model);
// Young 1974: sqrt(2 C M); right where checkpoints take little of the time between failures.
double young_interval(const FaultModel& model);

}  // namespace fleetx::predict
