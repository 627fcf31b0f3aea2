// State of a job: persistable variables of the program, made by startup.
#pragma once

#include <string>

#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {

// In both programs; startup fills it with `value`. A startup program that serves several programs
// may have the state already; it must start as the same there, else kInvalidArgument.
void add_state(Programs& programs, const std::string& name, const ir::TensorType& type,
               double value = 0.0, const ir::Placement& placement = {});

// Of the startup program.
void start_state(ir::Program& startup, const ir::VarInfo& info, double value);

// What a state is loaded from where a checkpoint lacks it (ir/stand_in.h), in both programs.
void set_stand_in(Programs& programs, const std::string& name, const std::string& other);

// Where the values of a state live, in both programs.
void place_state(Programs& programs, const std::string& name, const ir::Placement& placement);

}  // namespace fleetx::strategies
