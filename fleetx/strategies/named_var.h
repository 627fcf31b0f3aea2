// Variables that a user names in the settings of a strategy.
#pragma once

#include <string>
#include <string_view>

#include "fleetx/ir/program.h"

namespace fleetx::strategies {

// The variable `name` of an option. Where there is none, kInvalidArgument names the setting
// (`setting` is "amp_configs.custom_black_varnames"), the value, names that are close, and
// `remedy`.
const ir::VarInfo& named_var(const ir::Program& main, const std::string& name,
                             std::string_view setting, std::string_view remedy);

}  // namespace fleetx::strategies
