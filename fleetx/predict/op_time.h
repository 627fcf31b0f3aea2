// How long a step that computes will take: from measured ops of its kind, or else from the rates of
// the machine.
#pragma once

#include "fleetx/predict/machine.h"
#include "fleetx/runtime/planned_program.h"

namespace fleetx::predict {

// Cores that a rank has; below 1 where several share one.
double cores_of_rank(const Machine& machine, int ranks_per_host);

// On the cores that a rank has; more ranks than cores share them.
double op_seconds(const runtime::PlannedProgram& plan, const runtime::Step& step,
                  const Machine& machine, int ranks_per_host);

}  // namespace fleetx::predict
