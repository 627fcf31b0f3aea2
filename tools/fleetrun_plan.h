// fleetrun --plan: what the job of the flags would need, without starting it.
#pragma once

#include "fleetx/launch/options.h"
#include "tools/fleetrun_flags.h"

namespace fleetx::tools {

// Becomes the script, as the first worker of that job, which describes it instead of training
// (fleet/describe_job.h). Returns only where that fails: an Error.
int describe_job(launch::Options options, const PlanFlags& flags);

}  // namespace fleetx::tools
