// Backend gloo: TCP between hosts. Gloo moves the bytes; the algorithms (exchange.h), the order of
// reductions and the propagation of failures are ours.
#pragma once

#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

// `members` are all ranks of the job; all of them call it. `interface` is an address of this
// machine or the name of an interface.
std::unique_ptr<Communicator> make_gloo(int rank, const std::vector<Member>& members,
                                        std::shared_ptr<StoreClient> store,
                                        const std::string& interface, Milliseconds timeout);

}  // namespace fleetx::comm
