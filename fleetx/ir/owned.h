// Who has a persistable variable that not all ranks have. What one strategy has given to a stage of
// a pipeline another divides again, inside that stage; a part of a layer belongs to a stage, too:
//
//   state m : f32[10] owned(pp, 1)              all ranks of stage 1
//   state m : f32[10] owned(pp+dp/2, 3)         stage 1 of 2, and there rank 1 of each "dp/2"
//   param w : f32[5,8] sharded(mp, 0) {part_owner=1, part_owners="pp"}
//
// A placement says one thing, so that the owner of a part stands in the variable's attributes.
#pragma once

#include <optional>
#include <string>

#include "fleetx/ir/program.h"

namespace fleetx::ir {

struct Owner {
  std::string group;  // an axis, or several joined by '+' (see base/mesh.h)
  int rank = 0;       // in the group
  bool operator==(const Owner&) const = default;
};

// Nothing: all ranks have it, or a part of it.
std::optional<Owner> owner_of(const VarInfo& var);

// The variable is replicated, sharded, or has an owner already, who is forgotten.
void set_owner(VarInfo& var, const Owner& owner);

// Whether ranks that differ along an axis (or a part of one, "dp/2") have different values of it:
// their own, their part, or none.
bool differs_along(const VarInfo& var, std::string_view axis);

}  // namespace fleetx::ir
