// Questions to a server from outside of its job's workers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fleetx/comm/tcp_acceptor.h"
#include "fleetx/ps/wire.h"

namespace fleetx::ps {

struct ServerAnswer {
  uint64_t count = 0;
  std::string text;
};

// A connection for several of them, one after the other.
class ServerQuestions {
 public:
  // Both throw kComm or kTimeout; what the server refuses is kInvalidArgument.
  ServerQuestions(const std::string& endpoint, const comm::TcpIdentity& identity,
                  comm::Milliseconds timeout);
  ServerAnswer ask(wire::Header question, std::string_view payload, comm::Milliseconds timeout);

 private:
  const std::string endpoint_;
  std::unique_ptr<comm::Channel> channel_;
};

ServerAnswer ask_server(const std::string& endpoint, const comm::TcpIdentity& identity,
                        wire::Kind question, comm::Milliseconds timeout);

// Of a name or address; sockets are connected to by number.
comm::Endpoint resolve_server(const std::string& text);

}  // namespace fleetx::ps
