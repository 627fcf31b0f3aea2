// Lives of storages to offsets in one arena, and what memory the plan needs.
#include "fleetx/runtime/phases.h"

namespace fleetx::runtime {

void assign_memory(Planning& p) {
  PlannedProgram& plan = p.plan;
  const std::vector<bool> in_use = plan.storages_in_use();
  std::vector<Block*> arena;
  for (size_t s = 0; s < plan.storages.size(); ++s) {
    Storage& storage = plan.storages[s];
    if (!in_use[s]) continue;
    if (storage.region == Region::kArena) arena.push_back(&storage.block);
    if (storage.region == Region::kScope) plan.scope_bytes += storage.block.bytes;
  }
  plan.arena_bytes = pack(arena, p.skips("memory") ? Packing::kNoReuse : Packing::kReuse);
  plan.live_bytes = live_peak(arena);
}

}  // namespace fleetx::runtime
