// Programs in files, for all subcommands that take one.
#pragma once

#include <string>

#include "fleetx/ir/program.h"

namespace fleetx::tools {

// Of a prefix of NAME.pdmodel, as static.save_inference_model takes: that file. Of others: `given`.
std::string model_file(const std::string& given);

// Text or protobuf: what it is shows in the bytes, not in the name. Of a folder: the program of the
// saved model, or the main one of the checkpoint.
ir::Program load_program(const std::string& path);

// "57 ops, 12 parameters (1.2 M values, 4.7 MiB), data: x f32[-1,784]"
std::string summary(const ir::Program& program);

}  // namespace fleetx::tools
