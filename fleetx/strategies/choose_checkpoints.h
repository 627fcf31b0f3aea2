// Which values recompute keeps where the user names none. Seen from backward, forward is a row of
// ops that can be cut between any two of them: what is made before a cut and read after it is kept.
// Backward then holds the kept values and one stretch between two cuts at a time.
#pragma once

#include <optional>

#include "fleetx/ir/program.h"

namespace fleetx::strategies {

struct Checkpoints {
  ir::Names kept = {};
  double bytes = 0;         // most that backward waits for or has computed again, at any time
  double bytes_before = 0;  // the same without recompute
  bool batch_known = true;  // false: both are for an example, and only their ratio means something
};

// Of a program with its backward part. Without a budget: about the least memory that is possible.
// With one (in bytes): the least work that fits; a budget that cannot be met, or a batch that is
// not known, is kInvalidArgument.
Checkpoints choose_checkpoints(const ir::Program& main, std::optional<double> budget = {});

}  // namespace fleetx::strategies
