// The program that `fleetx plan` and `fleetx simulate` look at: from a file or a built-in model,
// for one rank of a job, planned.
#pragma once

#include <CLI/CLI.hpp>

#include "fleetx/runtime/planner.h"
#include "tools/workload.h"

namespace fleetx::tools {

struct PlanRequest {
  std::string file;
  int64_t batch = 0;
  int threads = 0;
  std::vector<std::string> shapes = {};  // NAME=8,128
  std::vector<std::string> fetch = {};
  std::vector<std::string> skip = {};
  std::string mesh = "";  // dp=64
  WorkloadStrategies with = {};
  int rank = 0;
};
void add_options(CLI::App& command, PlanRequest& request);

struct PlannedRequest {
  ir::Program program;  // before the passes
  ir::Names fetch;
  Mesh mesh;  // without axes: no job was asked for
  runtime::PlannedProgram plan;
  double items = 0;  // per step and rank, of a built-in model: images, tokens, examples
  std::string unit = "";
  size_t process_bytes = 0;  // that this process took before it planned
};
PlannedRequest make_plan(const PlanRequest& request);

}  // namespace fleetx::tools
