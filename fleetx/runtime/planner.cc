#include "fleetx/runtime/planner.h"

#include <chrono>
#include <fstream>

#include "fleetx/runtime/phases.h"

namespace fleetx::runtime {
namespace {

void timed(Planning& p, const char* name, void (*phase)(Planning&)) {
  const auto start = std::chrono::steady_clock::now();
  phase(p);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  p.plan.phases.push_back({name, spent.count()});
}

}  // namespace

PlannedProgram plan_program(const ir::Program& program, const FeedTypes& feeds,
                            const ir::Names& fetch, const PlanOptions& options) {
  Planning p{.plan = {}, .fetch = fetch, .options = options, .setting = {}};
  p.plan.program = program;
  p.plan.mesh = options.mesh;
  p.plan.feeds = feeds;
  p.setting = {.seed = program.seed(),
               .skips = {.layout = p.skips("layout"),
                         .winograd = p.skips("winograd"),
                         .strassen = p.skips("strassen")},
               .mesh = options.mesh,
               .groups = options.groups};
  check_request(p);
  run_passes(p);
  timed(p, "layout", choose_layouts);
  timed(p, "buckets", place_buckets);
  timed(p, "inplace", share_storages);
  timed(p, "memory", assign_memory);
  if (!options.dump_dir.empty()) {
    std::ofstream out(options.dump_dir + "/plan.txt");
    out << p.plan.table();
  }
  return std::move(p.plan);
}

}  // namespace fleetx::runtime
