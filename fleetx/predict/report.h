// Predictions as text.
#pragma once

#include <string>
#include <vector>

#include "fleetx/predict/predict.h"

namespace fleetx::predict {

// Ranks of a job that have the same plan but for their place.
struct RankKind {
  std::string name;  // "worker"
  int ranks = 1;
  const Prediction& prediction;
};

// One line per kind of rank: peak memory by kind, arithmetic, bytes per link, and the predicted
// step in its parts. `memory_bytes`: of a host, 0 where unknown; what does not fit is said.
std::string report(const std::vector<RankKind>& kinds, const Mesh& mesh, const Machine& machine,
                   int ranks_per_host);

}  // namespace fleetx::predict
