// Parameters that workers send each other (sharding) are in memory of their group, as gradients
// are: the others copy them from there, in one go, instead of through a small buffer, piece by
// piece.
#pragma once

#include <map>
#include <string>

#include "fleetx/comm/groups.h"
#include "fleetx/runtime/planned_program.h"
#include "fleetx/tensor/tensor.h"

namespace fleetx::runtime {

// Variables of the scope that steps of the plan send, and to which group.
std::map<std::string, std::string> sent_state(const PlannedProgram& plan);

// The tensor, moved into memory of the group; itself, where it is in such memory already or is not
// row-major.
Tensor in_shared_memory(const Tensor& tensor, comm::Communicator& group);

}  // namespace fleetx::runtime
