// State that only a job of several ranks has (snapshots of localsgd, residuals of dgc): a
// checkpoint of one rank lacks it. The variable says what it is loaded from there:
//
//   state w@SNAPSHOT  : f32[10] {stand_in="w"}                         the value of w in the file
//   state w__dgc_v__  : f32[10] per_rank(dp, average) {stand_in=""}    stays as startup makes it
//
// Any other variable that a file lacks is an error.
#pragma once

#include <optional>
#include <string>

#include "fleetx/ir/program.h"

namespace fleetx::ir {

// The name of the other variable; "": none is needed; nothing: the file must have the variable.
std::optional<std::string> stand_in_of(const VarInfo& var);
void set_stand_in(VarInfo& var, const std::string& name);

}  // namespace fleetx::ir
