// Strategies that give each layer its own learning rate take the place of the user's optimizer.
#pragma once

#include <functional>
#include <string>

#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {

struct Replacement {
  std::string strategy;                            // for errors
  std::string from, to;                            // ops of optimizers with the same state
  std::string remedy;                              // where the optimizer is another
  ir::Attrs attrs;                                 // of the new op; the others stay
  std::function<bool(const std::string&)> decays;  // which parameters have its weight decay
};

// Every update of the program becomes `to`, with the same gradient, rate, state and place. An
// optimizer that is not `from`, or a sparse gradient, is kInvalidArgument.
void replace_updates(ir::Program& main, const Replacement& replacement);

// Worker 0 warns of entries of `setting` that fit no parameter: a name that is spelt wrong would
// change nothing.
void warn_of_unused_exclusions(
    const ir::Program& main, const StrategyContext& context, std::string_view setting,
    std::string_view part,  // of a name
    const std::function<bool(const std::string& param, const std::string& entry)>& fits);

}  // namespace fleetx::strategies
