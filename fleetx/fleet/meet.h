// How the processes of a job find each other.
#pragma once

#include <memory>

#include "fleetx/comm/join.h"
#include "fleetx/fleet/role_maker.h"

namespace fleetx::fleet {

struct Meeting {
  std::shared_ptr<comm::Membership> membership = nullptr;
  std::shared_ptr<comm::Communicator> workers = nullptr;  // null: servers, and workers that do not
                                                          // know each other
  // Of a job with servers: where they are known from the start (mpirun).
  std::shared_ptr<comm::Communicator> servers = nullptr, all = nullptr;
};

// Workers meet in a group (comm/join.h). In a job with servers they may have no way to: roles that
// the user defines without worker_endpoints, and a worker that fleetrun has started again while the
// others went on; then everything goes through the servers. Under mpirun
// servers choose their ports here and tell them to all; the role gets their addresses.
Meeting meet(RoleMaker& role);

// In a job with servers: the group of the servers ("server"), or of all processes ("all": the
// workers, then the servers). kInvalidArgument in a process that is not in it; kUnsupported where
// they have no way to each other, as those that the user starts one by one.
std::shared_ptr<comm::Communicator> meet_servers(const Meeting& met, const RoleMaker& role,
                                                 std::string_view world);

}  // namespace fleetx::fleet
