// A process that stands for a job that is not there: `fleetrun --plan` starts one worker with
// FLEETX_PLAN=1. It has the variables of worker 0 of that job, meets nobody, skips what it is asked
// to run until the first program that trains, prints that program's plan and predicted step, and
// ends.
#pragma once

#include "fleetx/base/mesh.h"
#include "fleetx/fleet/distributed_strategy.h"

namespace fleetx::fleet {

bool is_describing();
// From now on this process only describes.
void describe_instead_of_running();
// What the program that trains was made with.
void note_described(const Mesh& mesh, const DistributedStrategy& strategy);

}  // namespace fleetx::fleet
