// The protobuf form of a Program, for files. Strings hold the serialized message.
#pragma once

#include <string>
#include <string_view>

#include "fleetx/ir/program.h"

namespace fleetx::ir {

std::string to_proto(const Program& program);
// `source` names the bytes in errors. The result is verified; anything damaged is kCorrupt.
Program parse_proto(std::string_view bytes, std::string_view source = "program");

}  // namespace fleetx::ir
