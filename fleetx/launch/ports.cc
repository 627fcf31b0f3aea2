#include "fleetx/launch/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fleetx/base/error.h"

namespace fleetx::launch {
namespace {

constexpr const char* kChooseAnother =
    "choose another port where it was given (--master, --servers, --workers, "
    "--http_port), else by FLAGS_START_PORT";

sockaddr_in to_sockaddr(const Endpoint& endpoint) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(endpoint.port));
  inet_pton(AF_INET, endpoint.ip.c_str(), &address.sin_addr);
  return address;
}

void allow_reuse(int fd) {
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

std::string command_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

std::string describe_process(const std::string& pid) {
  return str("process ", pid, " (", command_of(pid), ")");
}

// An abstract unix address is local to the network namespace and is freed with its process.
sockaddr_un claim_address(const Endpoint& endpoint, socklen_t& length) {
  const std::string name = "fleetrun-" + to_string(endpoint);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Fd claim(const std::string& what, const Endpoint& endpoint) {
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t length = 0;
  const sockaddr_un address = claim_address(endpoint, length);
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  if (bind(fd.get(), raw, length) == 0 && listen(fd.get(), 1) == 0) return fd;
  std::string holder = "another fleetrun";
  ucred peer{};
  socklen_t size = sizeof peer;
  const Fd ask(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(ask.get(), raw, length) == 0 &&
      getsockopt(ask.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
    holder = str("another fleetrun, ", describe_process(std::to_string(peer.pid)));
  fail(Error::Kind::kInvalidArgument,
       str(what, ": port ", endpoint.port, " of ", endpoint.ip, " is in use by ", holder,
           "; end that job or ", kChooseAnother));
}

// The inode of the listening socket in /proc/net/tcp; "" if there is none.
std::string listening_inode(const Endpoint& endpoint) {
  const sockaddr_in wanted = to_sockaddr(endpoint);
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);  // headings
  while (std::getline(table, line)) {
    std::istringstream in(line);
    std::string slot, local, remote, state, skip, inode;
    in >> slot >> local >> remote >> state >> skip >> skip >> skip >> skip >> skip >> inode;
    const uint64_t address = std::stoull(local.substr(0, 8), nullptr, 16);
    const unsigned long port = std::stoul(local.substr(9), nullptr, 16);
    const bool same = address == wanted.sin_addr.s_addr || address == INADDR_ANY;
    if (same && port == static_cast<unsigned long>(endpoint.port) && state == "0A") return inode;
  }
  return "";
}

}  // namespace

std::string holder_of(const Endpoint& endpoint) {
  namespace fs = std::filesystem;
  const std::string unknown = "a process that this user may not see";
  const std::string inode = listening_inode(endpoint);
  if (inode.empty()) return unknown;
  const std::string wanted = "socket:[" + inode + "]";
  std::error_code ignored;
  for (const fs::directory_entry& process : fs::directory_iterator("/proc", ignored)) {
    const std::string pid = process.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    for (const fs::directory_entry& fd : fs::directory_iterator(process.path() / "fd", ignored))
      if (fs::read_symlink(fd.path(), ignored) == wanted) return describe_process(pid);
  }
  return unknown;
}

namespace {

Fd bound_socket(const std::string& what, const Endpoint& endpoint) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  check_arg(static_cast<bool>(fd), what, ": cannot create a socket (", std::strerror(errno),
            "); each process needs some descriptors: raise `ulimit -n`, or start fewer");
  // A fixed port may still have connections of the last job in TIME_WAIT: allow reuse.
  if (endpoint.port != 0) allow_reuse(fd.get());
  const sockaddr_in address = to_sockaddr(endpoint);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int reason = errno;
    check_arg(reason != EADDRINUSE, what, ": port ", endpoint.port, " of ", endpoint.ip,
              " is in use by ", holder_of(endpoint), "; end that process or ", kChooseAnother);
    check_arg(reason != EADDRNOTAVAIL, what, ": ", endpoint.ip,
              " is not an address of this machine");
    fail(Error::Kind::kInvalidArgument,
         str(what, ": cannot bind ", to_string(endpoint), ": ", std::strerror(reason)));
  }
  // Only after bind(): a chosen port must not be in use by any other socket.
  allow_reuse(fd.get());
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  return fd;
}

}  // namespace

BoundPort bind_port(const std::string& what, const Endpoint& endpoint) {
  BoundPort bound;
  bound.endpoint = endpoint;
  if (endpoint.port != 0) bound.claim = claim(what, endpoint);
  bound.socket = bound_socket(what, endpoint);
  sockaddr_in address{};
  socklen_t length = sizeof address;
  getsockname(bound.socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
  bound.endpoint.port = ntohs(address.sin_port);
  return bound;
}

Fd bind_again(const std::string& what, const BoundPort& bound) {
  return bound_socket(what, bound.endpoint);
}

}  // namespace fleetx::launch
