// Between the value of a variable on one rank and the form that files hold, which knows no number
// of ranks (see ir/placement.h):
//   replicated   the value of rank 0
//   sharded      the parts of all ranks of the axis, joined along the dimension that was cut
//   per rank     the values of all ranks of the axis, one after the other in a new first dimension
//   owned        the value of its owner; of a part that has an owner, the parts of its owners,
//                joined
#pragma once

#include <optional>

#include "fleetx/comm/groups.h"
#include "fleetx/ir/program.h"
#include "fleetx/tensor/tensor.h"

namespace fleetx::train {

// All ranks of the variable's axis call it, in the same order; the result is complete on its rank
// 0. Row-major in and out. Without a group of that name this process is its only rank. `own` is
// undefined where another rank owns it.
Tensor to_whole(const ir::VarInfo& var, const Tensor& own, const comm::Groups& groups);

// The value of this rank. `saved` is how a stacked variable was saved; none: it was not per rank.
// Undefined: another rank owns it, or it does not survive the change of ranks and startup's stays.
// A shape that does not fit is kInvalidArgument that names source and variable.
Tensor from_whole(const ir::VarInfo& var, const Tensor& whole,
                  std::optional<ir::Placement::Resize> saved, const comm::Groups& groups,
                  const std::string& source);

}  // namespace fleetx::train
