// Backend tcp: messages over connections of our own (tcp_mesh.h), each authenticated with the job's
// secret.
#pragma once

#include "fleetx/comm/exchange.h"

namespace fleetx::comm {

// All ranks call it. `interface`: an address or interface of this machine that peers can reach.
std::unique_ptr<Exchange> make_tcp(int rank, const std::vector<Member>& members,
                                   std::shared_ptr<StoreClient> store, const std::string& interface,
                                   Milliseconds timeout);

}  // namespace fleetx::comm
