#include "fleetx/comm/tcp_channel.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fleetx/base/error.h"
#include "fleetx/comm/interruptible_wait.h"
#include "fleetx/comm/last_error.h"
#include "fleetx/comm/tcp_tls.h"

namespace fleetx::comm {
namespace {

// A host that has not acknowledged data or a probe for this long is gone, as for the store.
constexpr uint32_t kSilenceMs = 4000;
constexpr int kBufferBytes = 1 << 20;

[[noreturn]] void throw_lost() {
  if (errno == EPIPE || errno == ECONNRESET) throw ConnectionLost("closed its connection");
  throw ConnectionLost("is not reachable: " + reason(), true);
}

msghdr message(std::span<const iovec> parts) {
  msghdr m{};
  m.msg_iov = const_cast<iovec*>(parts.data());
  m.msg_iovlen = parts.size();
  return m;
}

// Unlike tune(), without TCP_USER_TIMEOUT: it would end the connection to a rank that computes for
// some seconds and does not read meanwhile.
void tune_for_data(int fd) {
  tune(fd);
  const int off = 0;
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &off, sizeof off);
  // Between hosts of a cluster BBR paces connections below the rate of the link, and cubic leaves
  // slow start too early for calls of 256 KB to 4 MB: twice the CPU time of reno.
  constexpr char kReno[] = "reno";
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kReno, sizeof kReno - 1);
}

class PlainChannel final : public Channel {
 public:
  explicit PlainChannel(Fd fd) : Channel(std::move(fd)) {}
};

}  // namespace

size_t Channel::read(std::span<const iovec> to) {
  msghdr m = message(to);
  const ssize_t n = recvmsg(fd(), &m, 0);
  if (n > 0) return static_cast<size_t>(n);
  if (n == 0) throw ConnectionLost("closed its connection");
  if (would_block()) return 0;
  throw_lost();
}

size_t Channel::write(std::span<const iovec> from) {
  const msghdr m = message(from);
  const ssize_t n = sendmsg(fd(), &m, MSG_NOSIGNAL);
  if (n >= 0) return static_cast<size_t>(n);
  if (would_block()) return 0;
  throw_lost();
}

void Channel::wake_at(size_t bytes) {
  const auto least = static_cast<int>(std::clamp<size_t>(bytes, 1, kBufferBytes));
  setsockopt(fd(), SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
}

bool Channel::is_silent() const {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return (info.tcpi_unacked > 0 || info.tcpi_probes > 1) && info.tcpi_last_ack_recv > kSilenceMs;
}

std::unique_ptr<Channel> Channel::over(Fd socket, const TlsContext* tls, bool is_server) {
  tune_for_data(socket.get());
  if (tls != nullptr) return tls->over(std::move(socket), is_server);
  return std::make_unique<PlainChannel>(std::move(socket));
}

void enlarge_buffers(int fd) {
  // A size that was set is fixed, unless the kernel (5.14) can be told otherwise.
  const int unlocked = 0, bytes = kBufferBytes;
  if (setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &unlocked, sizeof unlocked) != 0) return;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &unlocked, sizeof unlocked);
}

Fd connect_once(const Endpoint& endpoint, Deadline deadline, const std::function<void()>& check) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  check_arg(error == 0, "address '", endpoint.host, "': ", gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> address(found, &freeaddrinfo);
  Fd fd(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) fail(Error::Kind::kUnsupported, str("socket: ", reason()));
  enlarge_buffers(fd.get());
  if (connect(fd.get(), address->ai_addr, address->ai_addrlen) == 0) return fd;
  if (errno == EINPROGRESS) {
    wait_until_ready(fd.get(), POLLOUT, deadline, check);
    socklen_t size = sizeof errno;
    int result = 0;
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &result, &size);
    if (result == 0) return fd;
    errno = result;
  }
  throw ConnectionLost(str("cannot be connected to at ", to_string(endpoint), ": ", reason()),
                       errno != ECONNREFUSED && errno != ECONNRESET);
}

void wait_until_ready(int fd, short events, Deadline deadline, const std::function<void()>& check) {
  for (;;) {
    pollfd entry{fd, events, 0};
    if (poll(&entry, 1, left_ms(std::min(deadline, after(kInterruptPeriod)))) > 0) return;
    check();
    if (Clock::now() >= deadline) fail(Error::Kind::kTimeout, "no answer before the deadline");
  }
}

void write_all(Channel& channel, std::string_view bytes, Deadline deadline,
               const std::function<void()>& check) {
  while (!bytes.empty()) {
    const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    const size_t n = channel.write({&part, 1});
    bytes.remove_prefix(n);
    if (n == 0) wait_until_ready(channel.fd(), POLLOUT, deadline, check);
  }
}

void read_some(Channel& channel, std::string& bytes, size_t most, Deadline deadline,
               const std::function<void()>& check) {
  bytes.resize(most);
  const iovec part{bytes.data(), bytes.size()};
  size_t n = 0;
  while ((n = channel.read({&part, 1})) == 0)
    wait_until_ready(channel.fd(), POLLIN, deadline, check);
  bytes.resize(n);
}

}  // namespace fleetx::comm
