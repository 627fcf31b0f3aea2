// Backend hierarchical, the default: shared memory inside a host, Gloo between the hosts' first
// ranks. On one host it is the shared memory backend itself.
#pragma once

#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

// `host_of[r]` numbers the host of rank r; `host` is the group of this one, `flat` of all ranks.
std::unique_ptr<Communicator> make_hierarchical(int rank, const std::vector<int>& host_of,
                                                std::unique_ptr<Communicator> host,
                                                std::unique_ptr<Communicator> flat,
                                                std::shared_ptr<StoreClient> store,
                                                Milliseconds timeout);

}  // namespace fleetx::comm
