// The program that `fleetx plan` and `fleetx simulate` look at: from a file or a built-in model,
// for one rank of a job, planned.
#pragma once

#include <CLI/CLI.hpp>

#include "fleetx/predict/predict.h"
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
  int workers = 0;        // instead of a mesh: divided as the strategy says
  WorkloadStrategies with = {};
  int rank = 0;
};
void add_options(CLI::App& command, PlanRequest& request);

struct PlannedRequest {
  ir::Program program;  // before the passes
  ir::Names fetch;
  Mesh mesh;  // without axes: no job was asked for. With auto: as it chose
  runtime::PlannedProgram plan;
  double items = 0;  // per step and rank, of a built-in model: images, tokens, examples
  std::string unit = "";
  size_t process_bytes = 0;                  // that this process took before it planned
  fleet::DistributedStrategy strategy = {};  // of a built-in model; with auto: what it chose
  // Workers that have a part of the batch: stages, and those that divide layers, have the same.
  int parts() const { return mesh.has("dp") ? mesh.size("dp") : 1; }
};
PlannedRequest make_plan(const PlanRequest& request);

// A step of the job on these machines.
struct PredictedRequest {
  std::vector<predict::Prediction> kinds;  // of ranks: workers, or each stage of a pipeline
  int ranks_per_host = 1;

  // That of the rank which needs most memory.
  const predict::Prediction& largest() const;
  // The table of all kinds.
  std::string report(const PlannedRequest& made, const predict::Machine& machine) const;
};
PredictedRequest predict_request(const PlanRequest& request, const PlannedRequest& made,
                                 const predict::Machine& machine, int ranks_per_host);

}  // namespace fleetx::tools
