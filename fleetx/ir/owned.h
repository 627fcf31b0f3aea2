// Who has a persistable variable that not all ranks have. What one strategy has given to a stage of
// a pipeline another divides again, inside that stage; a part of a layer belongs to a stage, too:
//
//   state m : f32[10] owned(pp, 1)              all ranks of stage 1
//   state m : f32[10] owned(pp+dp/2, 3)         stage 1 of 2, and there rank 1 of each "dp/2"
//   param w : f32[5,8] sharded(mp, 0) {part_owner=1, part_owners="pp"}
//
// A placement says one thing, so that the owner of a part stands in the variable's attributes. So
// does the owner of a gradient, and the stage of other values: temporaries have no placement. These
// attributes are read and written here only; the verifier checks them.
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

// The rank that has the gradient of a parameter; nothing: every rank has it, or will have it. With
// other ranks the variable holds something else (zeros, what was sent) that nobody applies.
std::optional<Owner> gradient_owner(const VarInfo& gradient);
void set_gradient_owner(VarInfo& gradient, const Owner& owner);

// The stage of a pipeline that computes a variable once for each micro-batch, as var@MB0, var@MB1,
// ...: the variable itself stays in the program without a value, for errors. Nothing: any other.
std::optional<int> stage_of_value(const VarInfo& var);
void set_stage_of_value(VarInfo& var, int stage);

// What is wrong with these attributes; "": nothing.
std::string owner_error(const VarInfo& var);

// Whether ranks that differ along an axis (or a part of one, "dp/2") have different values of it:
// their own, their part, or none.
bool differs_along(const VarInfo& var, std::string_view axis);

}  // namespace fleetx::ir
