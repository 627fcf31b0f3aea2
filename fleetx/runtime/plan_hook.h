// For processes that only describe a job (fleetrun --plan): what an executor is asked to run is
// shown to the hook instead, and nothing is run. Set before the first run, by one thread.
#pragma once

#include <functional>

#include "fleetx/runtime/planned_program.h"

namespace fleetx::runtime {

using PlanHook =
    std::function<void(const ir::Program& program, const FeedTypes& feeds, const ir::Names& fetch)>;
void set_plan_hook(PlanHook hook);  // null: programs run again

}  // namespace fleetx::runtime
