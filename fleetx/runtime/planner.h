// Program x feed types x scope -> Plan. The phases, in order: the local passes (see passes/), then
//   layout   kernels are prepared; each says which layouts it wants and makes, and reorders are put
//            where they differ. Parameters move, once, into the layout their first reader wants.
//   inplace  outputs take over the memory of inputs that die, where the op allows it
//   memory   lifetimes to offsets in one arena; gradients that workers reduce to their buckets
//   bind     memory is allocated, parameters are moved, pointers are set
// The first three can be skipped by name, like the passes: layout then keeps all row-major.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fleetx/runtime/plan.h"

namespace fleetx::runtime {

struct PlanOptions {
  std::set<std::string> skip = {};  // passes and phases
  std::string dump_dir = "";
  // Whom the program computes with; null: comm::process_groups() when the plan is made.
  std::shared_ptr<const comm::Groups> groups = nullptr;
};

using FeedTypes = std::vector<std::pair<std::string, ir::TensorType>>;

// Throws kInvalidArgument that names the variable for: a missing or unknown feed, a feed that does
// not fit its declaration, an unknown fetch, a variable that is not in the scope yet.
std::unique_ptr<Plan> make_plan(const ir::Program& program, Scope& scope, const FeedTypes& feeds,
                                const ir::Names& fetch, const PlanOptions& options = {});

}  // namespace fleetx::runtime
