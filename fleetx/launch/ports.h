// Ports are bound by the launcher and handed to their process as open sockets, so that nobody else
// can take one between choice and use.
//
// A chosen port (endpoint port 0) is bound to no other socket, so two jobs never share one. A
// port the user or --ips fixed may be in use: then the error names who has it. The socket is bound
// but does not listen, and allows its address to be used again: a program that knows nothing of
// FLEETX_LISTEN_FD can still bind the port itself, with SO_REUSEADDR or SO_REUSEPORT as servers do.
#pragma once

#include <string>

#include "fleetx/base/fd.h"
#include "fleetx/launch/address.h"

namespace fleetx::launch {

struct BoundPort {
  Fd socket;
  // Held by the launcher while the job runs, where the port was fixed: another fleetrun that wants
  // the same port finds it taken even though nothing listens yet.
  Fd claim;
  Endpoint endpoint;  // with its port
};

// `what` ("worker 1") stands in the error.
BoundPort bind_port(const std::string& what, const Endpoint& endpoint);

// "process 4711 (python3)", or "another user's process" where the system does not tell.
std::string holder_of(const Endpoint& endpoint);

}  // namespace fleetx::launch
