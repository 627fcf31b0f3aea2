// TCP sockets with deadlines. A listening socket is bound to one address, never to all of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "fleetx/base/fd.h"
#include "fleetx/comm/deadline.h"

namespace fleetx::comm {

struct Endpoint {
  std::string host;
  int port = 0;
};

// "10.0.0.1:6170", "name:6170" or "[::1]:6170".
Endpoint parse_endpoint(std::string_view text);
std::string to_string(const Endpoint& endpoint);

// The address of a network interface of this machine ("eth0"); other names are returned as they
// are.
std::string address_of(const std::string& interface);

// Port 0: the system chooses. Wildcard addresses are refused.
Fd listen_on(const Endpoint& endpoint);
Endpoint local_endpoint(int fd);
// Retries until the deadline while the port is closed.
Fd connect_to(const Endpoint& endpoint, Deadline deadline);

// The settings of every connection: no delay; a dead host is detected within 5 s.
void tune(int fd);

// For non-blocking sockets. kTimeout at the deadline, kComm if the peer has closed.
void send_all(int fd, std::string_view bytes, Deadline deadline);
void receive_all(int fd, char* to, size_t bytes, Deadline deadline);

}  // namespace fleetx::comm
