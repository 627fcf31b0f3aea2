// Appends the backward part of a program: each op's grad function is called in reverse order,
// gradients of a variable with several readers are added up, and what does not need a gradient is
// left out.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "fleetx/ir/builder.h"

namespace fleetx::autograd {

struct ParamGrad {
  ir::Var param, grad;
};

struct BackwardOptions {
  // Parameters to differentiate for; empty: all trainable ones.
  ir::Names parameters = {};
  // Variables whose gradient is cut, in addition to those with stop_gradient.
  std::set<std::string> no_grad = {};
  // May the program have a backward part already? (Two losses, each with an optimizer. Strategies
  // see the first one.)
  bool again = false;
};

// Gradients of `loss` (one element) for the parameters, in the order in which backward produces
// them. A parameter that the loss does not depend on is not in the list. Fills in what the program
// trains (ir/training.h). Inputs without stop_gradient get one, too, named NAME@GRAD.
std::vector<ParamGrad> append_backward(const ir::Var& loss, const BackwardOptions& options = {});

// What the program trains now: its parameters with the gradients that an optimizer is to apply, as
// strategies have left them.
std::vector<ParamGrad> trained(ir::Builder& builder);

// Gradients of sum(targets * seeds) for `inputs`; an undefined Var where no target depends on it.
std::vector<ir::Var> gradients(const std::vector<ir::Var>& targets,
                               const std::vector<ir::Var>& inputs,
                               const std::vector<ir::Var>& seeds,
                               const std::set<std::string>& no_grad = {});

}  // namespace fleetx::autograd
