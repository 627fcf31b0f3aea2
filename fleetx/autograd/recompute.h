// Trades time for memory: forward values that are marked recomputable are not kept for backward but
// computed again, from the checkpoints, just before backward needs them. A rewrite of a finished
// program, so a recompute strategy only has to choose the marks.
#pragma once

#include "fleetx/ir/program.h"

namespace fleetx::autograd {

// Marks every forward temporary except `checkpoints` (attribute recompute=true). An unknown
// checkpoint is an error.
void mark_recomputable(ir::Program& program, const ir::Names& checkpoints);

// For each marked variable that backward reads: the ops that compute it are copied into the
// backward part (outputs named x@RECOMPUTE) and backward reads the copy. Copies are grouped by
// segment: the values between two checkpoints are computed again together, at their first use.
// Random ops draw the same numbers again, running statistics are not updated twice.
void recompute_marked(ir::Program& program);

}  // namespace fleetx::autograd
