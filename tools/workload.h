// The networks that `fleetx bench` runs, on made-up data held in memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fleetx/base/mesh.h"
#include "fleetx/fleet/distributed_strategy.h"
#include "fleetx/ir/program.h"
#include "fleetx/runtime/executor.h"

namespace fleetx::tools {

struct Workload {
  ir::Program main, startup;
  std::string loss;
  ir::Names outputs;  // what inference computes
  runtime::FeedTypes feed_types;
  runtime::Feeds feeds;  // of these types
  int64_t batch = 0;
  double items = 0;  // per step: images, tokens, examples
  std::string unit;
  fleet::DistributedStrategy strategy;  // with auto: what was chosen
  Mesh mesh;                            // that it needs
  // Workers that have a part of the batch: stages, and those that divide layers, have the same.
  int parts() const { return mesh.has("dp") ? mesh.size("dp") : 1; }
};

struct WorkloadInfo {
  std::string name;
  std::string description;
  int64_t batch;  // that the speed figures use
};
const std::vector<WorkloadInfo>& known_workloads();
bool is_workload(const std::string& name);

// Strategies that a workload is trained with.
struct WorkloadStrategies {
  std::string amp = "";  // bf16 or f16; "": f32
  bool recompute = false;
  std::string file = "";  // with the text of a DistributedStrategy
  // Instead of all these: what `auto` has chosen for another rank of the job.
  std::optional<fleet::DistributedStrategy> chosen = {};
  bool momentum = false;  // instead of the network's own optimizer: dgc needs it
};

fleet::DistributedStrategy strategy_of(const WorkloadStrategies& with);

// batch 0: the default. An unknown name is an error that lists the known ones. In a job of several
// workers the program is that of this worker, and `batch` and `items` are its share.
Workload make_workload(const std::string& name, int64_t batch, const WorkloadStrategies& with = {});

// The training program of any rank of any mesh, with the strategies that a job of that mesh has.
// For planning: there are no feeds, and this process joins nobody.
Workload describe_workload(const std::string& name, int64_t batch, const Mesh& mesh,
                           const WorkloadStrategies& with = {});

// From training to inference: the main program computes the outputs and nothing else.
void make_inference(Workload& w);

}  // namespace fleetx::tools
