// In which order gradients travel.
#pragma once

#include <vector>

#include "fleetx/ir/rewriter.h"
#include "fleetx/strategies/buckets.h"

namespace fleetx::strategies {

// Into the order in which backward has made them.
void sort_by_time(ir::Rewriter& rw, std::vector<Gradient>& gradients);

}  // namespace fleetx::strategies
