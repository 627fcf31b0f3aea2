// A model that was trained with parameter servers and is served without them.
#pragma once

#include <string>

#include "fleetx/ir/program.h"
#include "fleetx/ps/job_spec.h"
#include "fleetx/runtime/scope.h"

namespace fleetx::fleet {

// Lookups of tables that the servers keep, in a program that only computes, become lookups of
// t@KEYS and t@ROWS, which come from a snapshot of the servers (fleet::save_servers) and are put
// into the scope. Ids that were never trained give zeros. The folder must have the parts of all
// servers. Returns the names of what was put into the scope.
ir::Names serve_alone(ir::Program& program, runtime::Scope& scope, const ps::JobSpec& tables,
                      const std::string& folder);

}  // namespace fleetx::fleet
