// Whether a plan fits into memory, before anything is allocated: an error instead of a process that
// the kernel ends in the middle of a step.
#pragma once

#include "fleetx/base/process_memory.h"
#include "fleetx/runtime/planned_program.h"

namespace fleetx::runtime {

// kInvalidArgument that says how much is missing and what would help.
void check_fits(const PlannedProgram& plan, const MemoryLimit& limit);

}  // namespace fleetx::runtime
