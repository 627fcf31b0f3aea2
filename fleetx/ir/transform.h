// Programs derived from programs.
#pragma once

#include "fleetx/ir/program.h"

namespace fleetx::ir {

// The forward part with is_test set where an op has it (dropout, batch_norm): for evaluation and
// inference.
Program clone_for_test(const Program& program);

// Only what is needed to compute `targets`; ops with side effects on other variables are dropped.
// Unknown: an error.
Program prune(const Program& program, const Names& targets);

// `variables`, which ops of the program compute, are inputs of the new one: what was computed for
// them is left unread.
Program with_fed(const Program& program, const Names& variables);

}  // namespace fleetx::ir
