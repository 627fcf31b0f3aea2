#include "fleetx/ps/ask_server.h"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>

#include "fleetx/base/interrupt.h"
#include "fleetx/ps/identity.h"

namespace fleetx::ps {

using wire::Header;
using wire::Kind;

comm::Endpoint resolve_server(const std::string& text) {
  comm::Endpoint endpoint = comm::parse_endpoint(text);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(endpoint.host.c_str(), nullptr, &hints, &found);
  check_arg(error == 0, "parameter server '", text, "': ", gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> address(found, &freeaddrinfo);
  char host[NI_MAXHOST];
  if (getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof host, nullptr, 0,
                  NI_NUMERICHOST) == 0)
    endpoint.host = host;
  return endpoint;
}

ServerAnswer ask_server(const std::string& endpoint, const comm::TcpIdentity& identity,
                        wire::Kind question, comm::Milliseconds timeout) {
  const comm::Endpoint server = resolve_server(endpoint);
  const comm::Deadline deadline = comm::after(timeout);
  const auto check = [] { check_interrupt(); };
  try {
    const auto channel =
        comm::connect_to_rank(server, identity, kObserverRank, kServerRank, deadline, check);
    const wire::HeaderBytes ask = wire::encode({.kind = question, .request = 1});
    comm::write_all(*channel, {ask.data(), ask.size()}, deadline, check);
    std::string bytes, part;
    const auto receive = [&](size_t n) {
      while (bytes.size() < n) {
        comm::read_some(*channel, part, n - bytes.size(), deadline, check);
        bytes += part;
      }
    };
    receive(wire::kHeaderBytes);
    const Header reply =
        wire::decode(std::span<const char, wire::kHeaderBytes>(bytes.data(), wire::kHeaderBytes));
    check_file((reply.kind == Kind::kReply || reply.kind == Kind::kRefused) &&
                   reply.bytes <= wire::kMaxTextBytes,
               "parameter server at ", endpoint, ": no answer to ", to_string(question));
    bytes.clear();
    receive(reply.bytes);
    check_arg(reply.kind == Kind::kReply, "parameter server at ", endpoint, ": ", bytes);
    return {reply.count, bytes};
  } catch (const comm::ConnectionLost& e) {
    fail(Error::Kind::kComm, str("parameter server at ", endpoint, " ", e.what()));
  }
}

}  // namespace fleetx::ps
