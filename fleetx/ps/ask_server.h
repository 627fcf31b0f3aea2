// A question to a server from outside of its job's workers.
#pragma once

#include <string>

#include "fleetx/comm/tcp_acceptor.h"
#include "fleetx/ps/wire.h"

namespace fleetx::ps {

struct ServerAnswer {
  uint64_t count = 0;
  std::string text;
};
// Throws kComm or kTimeout; what the server refuses is kInvalidArgument.
ServerAnswer ask_server(const std::string& endpoint, const comm::TcpIdentity& identity,
                        wire::Kind question, comm::Milliseconds timeout);

// Of a name or address; sockets are connected to by number.
comm::Endpoint resolve_server(const std::string& text);

}  // namespace fleetx::ps
