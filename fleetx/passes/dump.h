#pragma once

#include <string>
#include <string_view>

#include "fleetx/ir/program.h"

namespace fleetx::passes {

// Writes the text of a program to <dir>/<NN>.<name>.txt and makes the folder where needed; does
// nothing for dir "".
void dump(const ir::Program& program, const std::string& dir, size_t number, std::string_view name);

}  // namespace fleetx::passes
