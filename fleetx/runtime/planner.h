// Planning: program x feed types -> PlannedProgram. The local passes (see passes/), then the phases
//   layout   kernels are prepared; each says which layouts it wants and makes, and reorders are put
//            where they differ. Parameters move, once, into the layout their first reader wants.
//   buckets  gradients that workers reduce together lie next to each other
//   inplace  outputs take over the memory of inputs that die, where the op allows it
//   memory   lifetimes to offsets in one arena
// Layout, inplace and memory can be skipped by name, like the passes: layout then keeps all
// row-major.
#pragma once

#include <set>
#include <string>

#include "fleetx/runtime/planned_program.h"
#include "fleetx/runtime/scope.h"

namespace fleetx::runtime {

struct PlanOptions {
  std::set<std::string> skip = {};  // passes and phases
  std::string dump_dir = "";
  // Where this rank stands: any rank of any mesh. Groups that are axes of it have their sizes from
  // here, without peers.
  Mesh mesh = {};
  // The other groups. Null: none, or for an executor comm::process_groups() when it plans.
  std::shared_ptr<const comm::Groups> groups = nullptr;
  // In which layouts parameters and state are; an executor sets it. Null: row-major, as startup
  // makes them.
  const Scope* scope = nullptr;
};

// Throws kInvalidArgument that names the variable for: a missing or unknown feed, a feed that does
// not fit its declaration, an unknown fetch.
PlannedProgram plan_program(const ir::Program& program, const FeedTypes& feeds,
                            const ir::Names& fetch, const PlanOptions& options = {});

}  // namespace fleetx::runtime
