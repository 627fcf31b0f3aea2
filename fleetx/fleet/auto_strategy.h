// strategy.auto: the strategies with the shortest predicted step, of those that fit into a worker's
// memory. The search goes over what strategies declare (strategies/choices.h): from nothing it
// adds, changes or drops one choice at a time, as long as that helps, from the two best so far; at
// last the sizes that matter little. Deterministic.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fleetx/base/mesh.h"
#include "fleetx/base/process_memory.h"
#include "fleetx/fleet/distributed_strategy.h"
#include "fleetx/ir/program.h"
#include "fleetx/predict/machine.h"

namespace fleetx::fleet {

// A candidate: what its step takes, and what memory a worker needs for it.
struct Candidate {
  double seconds = 0;  // for as many samples as a step of plain data parallel has
  double bytes = 0;
  double limit = 0;  // bytes that there are
};

// Throws what strategies throw that cannot be used together, or not on this network.
using Evaluate = std::function<Candidate(const DistributedStrategy&, const Mesh&)>;

struct AutoChoice {
  DistributedStrategy strategy;  // without auto
  Candidate predicted;
  int tried = 0;
  // What was chosen, the five best, and why the others lost.
  std::string report;
};

// Settings beside auto and auto_configs are kInvalidArgument that names them.
void check_alone(const DistributedStrategy& strategy);

// Where nothing fits: kInvalidArgument with the bytes that are missing and what would help.
// `split`: between so many ranks the program has split its layers (nn/parallel.h), so that
// mp_degree is given.
AutoChoice choose_strategy(const DistributedStrategy& asked, const Mesh& mesh,
                           const Evaluate& evaluate, int split = 1);

// Predictions for whole training programs on the machines of auto_configs. Made before the search:
// what this process has in memory then, every worker has beside its plan.
class Predictor {
 public:
  explicit Predictor(AutoConfigs configs);
  // `stages`: the program of a worker, of each stage where there is a pipeline, in their order.
  Candidate operator()(const std::vector<ir::Program>& stages, const std::string& loss,
                       const DistributedStrategy& strategy, const Mesh& mesh) const;

 private:
  // Bytes of a worker. `here`: the job runs on this machine, whose limits count, too.
  double limit(int ranks_per_host, bool here) const;

  AutoConfigs configs_;
  predict::Machine machine_;
  size_t process_bytes_ = resident_bytes();
};

}  // namespace fleetx::fleet
