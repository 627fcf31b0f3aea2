// A server's end of a connection: takes frames apart and sends replies. Reading belongs to the
// thread that watches it; send() may be called by any.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "fleetx/comm/tcp_channel.h"
#include "fleetx/ps/payload.h"
#include "fleetx/ps/table_service.h"
#include "fleetx/ps/wire.h"

namespace fleetx::ps {

class ServerConnection final : public Peer, public std::enable_shared_from_this<ServerConnection> {
 public:
  // `worker`: who has proved itself; negative: an observer.
  ServerConnection(std::unique_ptr<comm::Channel> channel, int worker, int epoll,
                   PayloadPool& pool);

  int worker() const { return worker_; }
  int fd() const { return channel_->fd(); }
  bool greeted = false;     // has said hello
  bool forwarded = false;   // by the server whose copy this is
  std::mutex told_mutex;    // of the next
  std::string told;         // which copy the worker knows of
  bool has_unread() const;  // the other side is not silent, this one is slow
  bool has_ended() const;   // the other side has closed it, or its process is gone

  // The size that the payload of a request must have; throws for one that is not accepted.
  using Bytes = std::function<uint64_t(const wire::Header&)>;
  using Handle = std::function<void(const wire::Header&, Payload&)>;
  // Reads what there is; a handler may keep the payload. Throws comm::ConnectionLost, or kCorrupt
  // and kInvalidArgument for frames that this server does not accept.
  void read(const Bytes& bytes, const Handle& handle);

  void send(wire::Header header, Payload payload) override;
  void write();  // what could not be sent before
  void close();  // later replies are dropped

  std::atomic<int64_t> bytes_in{0}, bytes_out{0};

 private:
  struct Frame {
    wire::HeaderBytes header;
    Payload payload;
  };
  void write_locked();
  void watch(uint32_t events);

  const std::unique_ptr<comm::Channel> channel_;
  const int worker_, epoll_;
  PayloadPool& pool_;

  wire::HeaderBytes header_bytes_{};
  size_t have_header_ = 0, have_payload_ = 0;
  wire::Header header_;
  Payload payload_;

  std::mutex mutex_;
  std::deque<Frame> out_;
  size_t sent_ = 0;  // of the first frame
  bool watched_out_ = false, closed_ = false;
};

}  // namespace fleetx::ps
