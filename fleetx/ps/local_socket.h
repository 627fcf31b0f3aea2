// Unix sockets for workers and servers of one host: a third more messages per second than TCP over
// the loopback interface. They have no file: their name belongs to the network namespace and
// contains the server's TCP address, so who knows that address finds both.
#pragma once

#include "fleetx/base/fd.h"
#include "fleetx/comm/socket.h"

namespace fleetx::ps {

// An empty Fd: there is no such socket, use TCP.
Fd listen_locally(const comm::Endpoint& endpoint);
Fd connect_locally(const comm::Endpoint& endpoint);

}  // namespace fleetx::ps
