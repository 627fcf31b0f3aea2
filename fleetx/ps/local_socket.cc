#include "fleetx/ps/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace fleetx::ps {
namespace {

struct Address {
  sockaddr_un unix_address{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&unix_address); }
};

Address address_of(const comm::Endpoint& endpoint) {
  const std::string name = "fleetx-ps-" + comm::to_string(endpoint);
  Address a;
  a.unix_address.sun_family = AF_UNIX;
  // A first byte of 0: no file.
  const size_t n = std::min(name.size(), sizeof a.unix_address.sun_path - 1);
  std::memcpy(a.unix_address.sun_path + 1, name.data(), n);
  a.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  return a;
}

Fd make() { return Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

}  // namespace

Fd listen_locally(const comm::Endpoint& endpoint) {
  const Address address = address_of(endpoint);
  Fd fd = make();
  if (!fd || bind(fd.get(), address.get(), address.size) != 0 || listen(fd.get(), 4096) != 0)
    return Fd();
  return fd;
}

Fd connect_locally(const comm::Endpoint& endpoint) {
  const Address address = address_of(endpoint);
  Fd fd = make();
  if (!fd || connect(fd.get(), address.get(), address.size) != 0) return Fd();
  return fd;
}

}  // namespace fleetx::ps
