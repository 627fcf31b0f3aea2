// Binding: PlannedProgram x scope -> Plan. Memory is allocated, parameters are moved into their
// layouts, pointers are set.
#pragma once

#include <memory>

#include "fleetx/runtime/plan.h"
#include "fleetx/runtime/scope.h"

namespace fleetx::runtime {

struct BindOptions {
  // Whom the program computes with; null: nobody.
  std::shared_ptr<const comm::Groups> groups = nullptr;
  // Shared with plans that never run at the same time; null: its own.
  std::shared_ptr<PlanMemory> memory = nullptr;
};

// Throws kInvalidArgument that names the variable for one that the program reads and that is not in
// the scope, or is there with another type.
std::unique_ptr<Plan> bind(PlannedProgram planned, Scope& scope, const BindOptions& options = {});

}  // namespace fleetx::runtime
