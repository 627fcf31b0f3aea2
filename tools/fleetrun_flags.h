// The command line of fleetrun. Everything after the script belongs to the script.
#pragma once

#include <optional>

#include "fleetx/launch/options.h"

namespace fleetx::tools {

// --plan: the job is described instead of started.
struct PlanFlags {
  bool plan = false;
  std::string machines = {}, timeline = {};
};

// nullopt: --help or --version was asked for and has been printed. Bad input: kInvalidArgument.
std::optional<launch::Options> parse_fleetrun(int argc, const char* const* argv, PlanFlags& plan);

}  // namespace fleetx::tools
