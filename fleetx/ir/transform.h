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

// The program with inputs of these shapes: the types of all that its ops compute are inferred anew.
// A shape that an op does not take is its error, an input that is not there kInvalidArgument.
Program with_inputs(const Program& program,
                    const std::vector<std::pair<std::string, Shape>>& shapes);

// The step of a loop, as a program with one step of it has it.
struct Step {
  Names ops;  // each by one of its outputs
  // (variable that an op of the step reads, the one that takes its place in the next step)
  std::vector<std::pair<std::string, std::string>> carried;
  // (result of an op behind the step, the variable of the step that it reads): a concat is given
  // those of all steps, an assign that of the last one
  std::vector<std::pair<std::string, std::string>> collected;
};

// The program with so many steps, at least one: the ops of the step follow each other with
// variables of their own; parameters and what lives from step to step they share. The program has
// no backward part yet. An op or variable that is not there is kInvalidArgument.
Program repeat(const Program& program, const Step& step, int64_t times);

}  // namespace fleetx::ir
