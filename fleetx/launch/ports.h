// The launcher binds ports and passes them to the processes as open sockets, so that no other
// program can take one between choice and use.
//
// A chosen port (endpoint port 0) is bound to no other socket, so two jobs never share one. A fixed
// port may be in use: the error names the process that holds it. The socket is bound but does not
// listen, and allows reuse of its address: a program that does not know FLEETX_LISTEN_FD can bind
// the port itself with SO_REUSEADDR or SO_REUSEPORT.
#pragma once

#include <string>

#include "fleetx/base/fd.h"
#include "fleetx/launch/address.h"

namespace fleetx::launch {

struct BoundPort {
  Fd socket;
  // Of a fixed port: held while the job runs, so that another fleetrun finds the port in use
  // although nothing listens yet.
  Fd claim;
  Endpoint endpoint;  // with its port
};

// `what` ("worker 1") is named in the error.
BoundPort bind_port(const std::string& what, const Endpoint& endpoint);

// The same port again, for a process that is started again. `bound` keeps its claim.
Fd bind_again(const std::string& what, const BoundPort& bound);

// "process 4711 (python3)", or that it is a process that this user may not see.
std::string holder_of(const Endpoint& endpoint);

}  // namespace fleetx::launch
