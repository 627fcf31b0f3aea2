// What others need to know of the strategy data_parallel.
#pragma once

#include <string_view>

namespace fleetx::strategies {

// State of a data-parallel program: the gradient of the loss is multiplied by it. 1, but for
// workers that have run out of data (see fleet/join.h).
inline constexpr std::string_view kWeightVar = "@worker_weight@";

}  // namespace fleetx::strategies
