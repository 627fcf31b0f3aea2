// Where the framework cuts a network into the stages of a pipeline, if the user has not said it.
#pragma once

#include <vector>

#include "fleetx/ir/program.h"

namespace fleetx::strategies {

struct CutOptions {
  int stages = 1;
  int64_t micro_batch = 1;  // samples, for unknown dimensions
};

// For each of these forward ops, in the order of the program, the stage that is to compute it.
// Stages are runs of ops, each with a parameter that no other op before has read. The work of the
// largest stage (arithmetic and memory traffic, sums of gradients too) is within 2 % of the least
// possible; of such cuts the one that moves the fewest bytes between stages. Data of unknown size
// have a row for each sample, or as many as their attribute `rows` says. More stages than such
// parameters is kInvalidArgument.
std::vector<int> cut_into_stages(const ir::Program& main, const std::vector<const ir::Op*>& ops,
                                 const CutOptions& options);

}  // namespace fleetx::strategies
