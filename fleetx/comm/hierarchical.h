// Backend hierarchical, the default: shared memory inside a host, messages between hosts. On one
// host it is the shared memory backend itself.
#pragma once

#include "fleetx/comm/exchange.h"
#include "fleetx/comm/shared.h"

namespace fleetx::comm {

// `host_of[r]` numbers the host of rank r; `host` is the group of this one, `flat` of all ranks.
std::unique_ptr<Communicator> make_hierarchical(int rank, const std::vector<int>& host_of,
                                                std::unique_ptr<Shared> host,
                                                std::unique_ptr<Exchange> flat,
                                                std::shared_ptr<StoreClient> store,
                                                Milliseconds timeout);

}  // namespace fleetx::comm
