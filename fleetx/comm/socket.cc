#include "fleetx/comm/socket.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <thread>

#include "fleetx/base/error.h"
#include "fleetx/comm/interruptible_wait.h"
#include "fleetx/comm/last_error.h"

namespace fleetx::comm {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const Endpoint& endpoint, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  check_arg(error == 0, "address '", endpoint.host, "': ", gai_strerror(error));
  return Addresses(found, &freeaddrinfo);
}

bool is_wildcard(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == INADDR_ANY;
  return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, &in6addr_any,
                     sizeof in6addr_any) == 0;
}

void set_option(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);
}

// Throws kTimeout at the deadline, kComm if poll() fails.
void wait_for(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd entry{fd, events, 0};
    const Deadline end = interruptible() ? std::min(deadline, after(kInterruptPeriod)) : deadline;
    const int n = poll(&entry, 1, left_ms(end));
    if (n > 0) return;
    if (n < 0 && errno != EINTR) fail(Error::Kind::kComm, str("poll: ", reason()));
    if (Clock::now() >= deadline) fail(Error::Kind::kTimeout, "no answer before the deadline");
    check_interrupt();
  }
}

// An empty Fd with errno set if this attempt failed.
Fd try_connect(const addrinfo& address, Deadline deadline) {
  Fd fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  if (connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return Fd();
    wait_for(fd.get(), POLLOUT, deadline);
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      errno = error;
      return Fd();
    }
  }
  tune(fd.get());
  return fd;
}

}  // namespace

Endpoint parse_endpoint(std::string_view text) {
  const size_t colon = text.rfind(':');
  check_arg(colon != std::string_view::npos && colon > 0, "address '", text,
            "': expected HOST:PORT");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  Endpoint endpoint{std::string(host), 0};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), endpoint.port);
  check_arg(error == std::errc{} && end == digits.data() + digits.size() && endpoint.port >= 0 &&
                endpoint.port <= 65535,
            "address '", text, "': '", digits, "' is not a port (0 to 65535)");
  return endpoint;
}

std::string to_string(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return str(v6 ? "[" : "", endpoint.host, v6 ? "]:" : ":", endpoint.port);
}

std::string address_of(const std::string& interface) {
  if (if_nametoindex(interface.c_str()) == 0) return interface;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return interface;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(list, &freeifaddrs);
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* a = list; a != nullptr; a = a->ifa_next) {
      if (interface != a->ifa_name || a->ifa_addr == nullptr || a->ifa_addr->sa_family != family)
        continue;
      char host[NI_MAXHOST];
      const auto size =
          static_cast<socklen_t>(family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
      if (getnameinfo(a->ifa_addr, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0)
        return host;
    }
  fail(Error::Kind::kInvalidArgument, str("interface '", interface, "' has no address"));
}

Fd listen_on(const Endpoint& endpoint) {
  const Addresses address = resolve(endpoint, AI_PASSIVE);
  check_arg(!is_wildcard(address->ai_addr), "address '", endpoint.host,
            "' means all interfaces; name one of this machine's addresses");
  Fd fd(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) fail(Error::Kind::kUnsupported, str("socket: ", reason()));
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  const bool ok =
      bind(fd.get(), address->ai_addr, address->ai_addrlen) == 0 && listen(fd.get(), 4096) == 0;
  check_arg(ok, "cannot listen on ", to_string(endpoint), ": ", reason());
  return fd;
}

Endpoint local_endpoint(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&storage), size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    fail(Error::Kind::kInvalidArgument, str("file descriptor ", fd, " is not a TCP socket"));
  return {host, std::stoi(port)};
}

Fd connect_to(const Endpoint& endpoint, Deadline deadline) {
  const Addresses addresses = resolve(endpoint, 0);
  for (;;) {
    for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next)
      if (Fd fd = try_connect(*a, deadline)) return fd;
    const std::string why = reason();
    if (Clock::now() >= deadline)
      fail(Error::Kind::kTimeout, str("cannot connect to ", to_string(endpoint), ": ", why));
    check_interrupt();
    std::this_thread::sleep_for(Milliseconds(20));
  }
}

void tune(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 2);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 4000);
}

void send_all(int fd, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0)
      bytes.remove_prefix(static_cast<size_t>(n));
    else if (would_block())
      wait_for(fd, POLLOUT, deadline);
    else
      fail(Error::Kind::kComm, str("connection lost: ", reason()));
  }
}

void receive_all(int fd, char* to, size_t bytes, Deadline deadline) {
  while (bytes > 0) {
    const ssize_t n = recv(fd, to, bytes, 0);
    if (n == 0) fail(Error::Kind::kComm, "connection closed by the other side");
    if (n > 0) {
      to += n;
      bytes -= static_cast<size_t>(n);
    } else if (would_block()) {
      wait_for(fd, POLLIN, deadline);
    } else {
      fail(Error::Kind::kComm, str("connection lost: ", reason()));
    }
  }
}

}  // namespace fleetx::comm
