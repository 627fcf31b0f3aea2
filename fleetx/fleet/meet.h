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
};

// Workers meet in a group (comm/join.h). In a job with servers they may have no way to: roles that
// the user defines without worker_endpoints, and a worker that fleetrun has started again while the
// others went on; then everything goes through the servers. Under mpirun
// servers choose their ports here and tell them to all; the role gets their addresses.
Meeting meet(RoleMaker& role);

}  // namespace fleetx::fleet
