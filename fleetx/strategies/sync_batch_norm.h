// What others need to know of the strategy sync_batch_norm.
#pragma once

#include "fleetx/ir/program.h"

namespace fleetx::strategies {

// Batch norms that compute statistics take them over the batch of all data-parallel workers; so do
// their gradients, where the program has them already.
void take_statistics_over_all_workers(ir::Program& main);

}  // namespace fleetx::strategies
