// Trades time for memory: some forward values are not kept for backward but computed again, from
// the checkpoints, just before backward needs them. A rewrite of a finished program, so a recompute
// strategy only has to choose the values.
#pragma once

#include <set>
#include <string>

#include "fleetx/ir/program.h"

namespace fleetx::autograd {

// Forward temporaries that can be computed again: all but `checkpoints` and what ops with side
// effects write. An unknown checkpoint is an error.
std::set<std::string> recomputable(const ir::Program& program, const ir::Names& checkpoints);

// For each variable of `dropped` that backward reads: the ops that compute it are copied into the
// backward part (outputs named x@RECOMPUTE) and backward reads the copy. Copies are grouped by
// segment: the values between two checkpoints are computed again together, at their first use.
// Random ops draw the same numbers again, running statistics are not updated twice.
void recompute(ir::Program& program, const std::set<std::string>& dropped);

}  // namespace fleetx::autograd
