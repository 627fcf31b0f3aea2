// A connection between two ranks: a stream of bytes that never blocks.
#pragma once

#include <sys/uio.h>

#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "fleetx/comm/socket.h"

namespace fleetx::comm {

// The connection has ended, or the other host cannot be reached: then it may as well be this one
// that is cut off.
struct ConnectionLost : std::runtime_error {
  explicit ConnectionLost(const std::string& why, bool is_unreachable = false)
      : std::runtime_error(why), unreachable(is_unreachable) {}
  bool unreachable;
};

// The other side has other certificates, another secret, or none: trying again does not help.
struct NotTrusted : ConnectionLost {
  using ConnectionLost::ConnectionLost;
};
struct OtherCertificates : NotTrusted {
  using NotTrusted::NotTrusted;
};

class TlsContext;

inline size_t bytes_of(std::span<const iovec> parts) {
  size_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

// One thread may read while another one writes.
class Channel {
 public:
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int fd() const { return fd_.get(); }
  // How many bytes were moved; less than asked for: the socket has, or takes, no more at the
  // moment. Throws ConnectionLost.
  virtual size_t read(std::span<const iovec> to);
  virtual size_t write(std::span<const iovec> from);
  // Whether bytes can be read that the socket does not have any more.
  virtual bool has_decrypted() const { return false; }
  // What only the two ends of this connection know. Empty: nothing, it is not encrypted.
  virtual std::string binding() const { return {}; }
  // Whoever sleeps until this socket can be read is woken only when so many bytes are there, or the
  // connection has ended. A hint: who reads anyway gets what has come.
  virtual void wake_at(size_t bytes);
  // Whether the host of the other side has not acknowledged anything for some seconds. A rank that
  // computes and does not read is no such case: its kernel answers.
  bool is_silent() const;

  // Null: not encrypted.
  static std::unique_ptr<Channel> over(Fd socket, const TlsContext* tls, bool is_server);

 protected:
  explicit Channel(Fd fd) : fd_(std::move(fd)) {}

 private:
  Fd fd_;
};

// Larger buffers for connections that this socket makes, or accepts: with those of the system the
// first calls on a connection are slow. The kernel may enlarge them further.
void enlarge_buffers(int fd);

// Connects. `check` is called while it waits, and may throw. A closed port is ConnectionLost:
// ranks listen before they tell their address.
Fd connect_once(const Endpoint& endpoint, Deadline deadline, const std::function<void()>& check);

// Returns when poll() reports one of the events; kTimeout at the deadline.
void wait_until_ready(int fd, short events, Deadline deadline, const std::function<void()>& check);

// Whole messages before a channel belongs to an event loop: wait until something can be moved.
void write_all(Channel& channel, std::string_view bytes, Deadline deadline,
               const std::function<void()>& check);
void read_some(Channel& channel, std::string& bytes, size_t most, Deadline deadline,
               const std::function<void()>& check);

}  // namespace fleetx::comm
