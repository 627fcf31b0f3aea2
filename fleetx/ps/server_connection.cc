#include "fleetx/ps/server_connection.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

namespace fleetx::ps {

using wire::kHeaderBytes;

namespace {

// Read for one connection before the others have their turn.
constexpr size_t kTurnBytes = size_t{4} << 20;
constexpr size_t kMaxParts = 64;

}  // namespace

ServerConnection::ServerConnection(std::unique_ptr<comm::Channel> channel, int worker, int epoll,
                                   PayloadPool& pool)
    : channel_(std::move(channel)), worker_(worker), epoll_(epoll), pool_(pool) {}

void ServerConnection::read(const Bytes& bytes, const Handle& handle) {
  size_t turn = 0;
  for (;;) {
    // The rest of a payload, and in the same call the header that follows it.
    iovec parts[2];
    size_t count = 0;
    const size_t rest = have_header_ == kHeaderBytes ? payload_.size() - have_payload_ : 0;
    if (rest > 0) parts[count++] = {payload_.data() + have_payload_, rest};
    wire::HeaderBytes next{};
    char* const header = rest > 0 ? next.data() : header_bytes_.data();
    const size_t at = rest > 0 ? 0 : have_header_;
    parts[count++] = {header + at, kHeaderBytes - at};
    const size_t n = channel_->read({parts, count});
    if (n == 0) return;
    turn += n;
    bytes_in += static_cast<int64_t>(n);
    size_t of_header = n;
    if (rest > 0) {
      have_payload_ += std::min(n, rest);
      if (n < rest) {
        if (turn >= kTurnBytes && !channel_->has_decrypted()) return;
        continue;
      }
      handle(header_, payload_);
      header_bytes_ = next;
      have_header_ = 0;
      of_header = n - rest;
    }
    have_header_ += of_header;
    if (have_header_ < kHeaderBytes) continue;
    header_ = wire::decode(header_bytes_);
    const uint64_t wanted = bytes(header_);
    check_arg(header_.bytes == wanted, to_string(header_.kind), ": ", header_.bytes,
              " bytes where ", wanted, " are expected");
    if (payload_.capacity() < wanted) {
      pool_.give_back(std::move(payload_));
      payload_ = pool_.take(wanted);
    }
    payload_.resize(wanted);
    have_payload_ = 0;
    if (wanted == 0) {
      handle(header_, payload_);
      have_header_ = 0;
    }
    if (turn >= kTurnBytes && !channel_->has_decrypted()) return;
  }
}

bool ServerConnection::has_unread() const {
  int bytes = 0;
  return ioctl(channel_->fd(), FIONREAD, &bytes) == 0 && bytes > 0;
}

bool ServerConnection::has_ended() const {
  pollfd socket{.fd = channel_->fd(), .events = POLLRDHUP, .revents = 0};
  return poll(&socket, 1, 0) > 0;
}

void ServerConnection::send(wire::Header header, Payload payload) {
  const std::scoped_lock lock(mutex_);
  if (closed_) return;
  header.bytes = payload.size();
  out_.push_back({wire::encode(header), std::move(payload)});
  // Frames that wait already are sent when the socket takes more.
  if (!watched_out_) write_locked();
}

void ServerConnection::write() {
  const std::scoped_lock lock(mutex_);
  if (!closed_) write_locked();
}

void ServerConnection::write_locked() {
  try {
    while (!out_.empty()) {
      iovec parts[kMaxParts];
      size_t count = 0, skip = sent_;
      for (auto frame = out_.begin(); frame != out_.end() && count + 2 <= kMaxParts; ++frame) {
        const iovec both[] = {{frame->header.data(), kHeaderBytes},
                              {frame->payload.data(), frame->payload.size()}};
        for (const iovec& part : both) {
          const size_t cut = std::min(skip, part.iov_len);
          skip -= cut;
          if (part.iov_len > cut)
            parts[count++] = {static_cast<char*>(part.iov_base) + cut, part.iov_len - cut};
        }
      }
      const size_t n = channel_->write({parts, count});
      bytes_out += static_cast<int64_t>(n);
      sent_ += n;
      while (!out_.empty() && sent_ >= kHeaderBytes + out_.front().payload.size()) {
        sent_ -= kHeaderBytes + out_.front().payload.size();
        pool_.give_back(std::move(out_.front().payload));
        out_.pop_front();
      }
      if (n == 0) break;
    }
    const bool blocked = !out_.empty();
    if (blocked != watched_out_) watch(blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
    watched_out_ = blocked;
  } catch (const comm::ConnectionLost&) {
    // The thread that reads learns of it, and ends the connection.
    shutdown(channel_->fd(), SHUT_RDWR);
    out_.clear();
    closed_ = true;
  }
}

void ServerConnection::watch(uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = channel_->fd();
  epoll_ctl(epoll_, EPOLL_CTL_MOD, channel_->fd(), &event);
}

void ServerConnection::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  out_.clear();
  epoll_ctl(epoll_, EPOLL_CTL_DEL, channel_->fd(), nullptr);
  shutdown(channel_->fd(), SHUT_RDWR);
}

}  // namespace fleetx::ps
