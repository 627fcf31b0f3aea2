// What others need to know of the strategy pipeline.
#pragma once

#include "fleetx/ir/program.h"

namespace fleetx::strategies {

// How many stages the user's device_guards name; 0 where there are none.
int stages_in(const ir::Program& main);

}  // namespace fleetx::strategies
