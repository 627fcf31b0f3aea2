// The phases of planning, in the order in which plan_program calls them. Each takes what the ones
// before it have put into Planning, and none allocates memory of the program.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fleetx/runtime/planner.h"

namespace fleetx::runtime {

struct BucketRequest {
  int step = 0;
  kernel::Bucket bucket;
};

// What the phases work on.
struct Planning {
  PlannedProgram plan;
  const ir::Names& fetch;
  const PlanOptions& options;
  kernel::Setting setting;

  std::map<std::string, ir::TensorType> types = {};     // of variables, as far as known
  std::vector<std::pair<int, const ir::Op*>> ops = {};  // step of each op
  std::vector<BucketRequest> buckets = {};              // that kernels have asked for

  bool skips(const char* phase) const { return options.skip.contains(phase); }
};

// request.cc: feeds and fetches exist and fit their declarations; the local passes rewrite the
// program for them.
void check_request(Planning& p);
void run_passes(Planning& p);
const ir::VarInfo& fetched_var(const Planning& p, const std::string& name);

// layout.cc: kernels are prepared; each says which layouts it wants and makes, and reorders are put
// where they differ. Gives every value a storage of its own, with its life.
void choose_layouts(Planning& p);

// buckets.cc: gradients that workers reduce together lie next to each other.
void place_buckets(Planning& p);

// inplace.cc: outputs take over the memory of inputs that die, where the op allows it.
void share_storages(Planning& p);

// assign_memory.cc: lives to offsets in one arena.
void assign_memory(Planning& p);

}  // namespace fleetx::runtime
