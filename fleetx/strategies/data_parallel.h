// What others need to know of the strategy data_parallel.
#pragma once

#include <string_view>

namespace fleetx::strategies {

// The axis of the mesh along which workers share the batch, and the name of their group.
inline constexpr const char* kDataAxis = "dp";

// State of a data-parallel program: the gradient of the loss is multiplied by it. 1, but for
// workers that have run out of data (see fleet/join.h).
inline constexpr std::string_view kWeightVar = "@worker_weight@";

}  // namespace fleetx::strategies
