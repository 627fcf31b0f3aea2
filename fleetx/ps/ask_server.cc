#include "fleetx/ps/ask_server.h"

#include <netdb.h>
#include <sys/socket.h>

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

namespace {

void check() { check_interrupt(); }

}  // namespace

ServerQuestions::ServerQuestions(const std::string& endpoint, const comm::TcpIdentity& identity,
                                 comm::Milliseconds timeout)
    : endpoint_(endpoint) {
  const comm::Endpoint server = resolve_server(endpoint);
  try {
    channel_ = comm::connect_to_rank(server, identity, kObserverRank, kServerRank,
                                     comm::after(timeout), check);
  } catch (const comm::ConnectionLost& e) {
    fail(Error::Kind::kComm, str("parameter server at ", endpoint_, " ", e.what()));
  }
}

ServerAnswer ServerQuestions::ask(Header question, std::string_view payload,
                                  comm::Milliseconds timeout) {
  const comm::Deadline deadline = comm::after(timeout);
  question.request = 1;
  question.bytes = payload.size();
  try {
    const wire::HeaderBytes header = wire::encode(question);
    comm::write_all(*channel_, {header.data(), header.size()}, deadline, check);
    if (!payload.empty()) comm::write_all(*channel_, std::string(payload), deadline, check);
    std::string bytes, part;
    const auto receive = [&](size_t n) {
      while (bytes.size() < n) {
        comm::read_some(*channel_, part, n - bytes.size(), deadline, check);
        bytes += part;
      }
    };
    receive(wire::kHeaderBytes);
    const Header reply =
        wire::decode(std::span<const char, wire::kHeaderBytes>(bytes.data(), wire::kHeaderBytes));
    check_file((reply.kind == Kind::kReply || reply.kind == Kind::kRefused) &&
                   reply.bytes <= wire::kMaxTextBytes,
               "parameter server at ", endpoint_, ": no answer to ", to_string(question.kind));
    bytes.clear();
    receive(reply.bytes);
    check_arg(reply.kind == Kind::kReply, "parameter server at ", endpoint_, ": ", bytes);
    return {reply.count, bytes};
  } catch (const comm::ConnectionLost& e) {
    fail(Error::Kind::kComm, str("parameter server at ", endpoint_, " ", e.what()));
  }
}

ServerAnswer ask_server(const std::string& endpoint, const comm::TcpIdentity& identity,
                        wire::Kind question, comm::Milliseconds timeout) {
  return ServerQuestions(endpoint, identity, timeout).ask({.kind = question}, {}, timeout);
}

}  // namespace fleetx::ps
