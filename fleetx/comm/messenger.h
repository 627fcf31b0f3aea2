// Point-to-point messages, of which the collectives between hosts are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fleetx/comm/deadline.h"

namespace fleetx::comm {

// A message in flight. Its memory must stay valid until it is done or this is destroyed.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual bool done() = 0;
  // Throws PeerFailure. May be called again when it is done.
  virtual void wait(Deadline deadline) = 0;
};

inline void wait_all(std::vector<std::unique_ptr<Transfer>>& transfers, Deadline deadline) {
  for (const auto& t : transfers) t->wait(deadline);
  transfers.clear();
}

class Messenger {
 public:
  // Messages of one label between two ranks arrive in the order in which they were sent.
  std::unique_ptr<Transfer> post_send(int peer, uint64_t label, const void* data, size_t bytes) {
    bytes_sent_ += static_cast<int64_t>(bytes);
    return start_send(peer, label, data, bytes);
  }
  std::unique_ptr<Transfer> post_receive(int peer, uint64_t label, void* data, size_t bytes) {
    bytes_received_ += static_cast<int64_t>(bytes);
    return start_receive(peer, label, data, bytes);
  }
  int64_t bytes_sent() const { return bytes_sent_; }
  int64_t bytes_received() const { return bytes_received_; }
  // Sends that nobody will wait for go on by themselves.
  virtual void send_in_background() {}

 protected:
  ~Messenger() = default;
  virtual std::unique_ptr<Transfer> start_send(int peer, uint64_t label, const void* data,
                                               size_t bytes) = 0;
  virtual std::unique_ptr<Transfer> start_receive(int peer, uint64_t label, void* data,
                                                  size_t bytes) = 0;

 private:
  int64_t bytes_sent_ = 0, bytes_received_ = 0;
};

}  // namespace fleetx::comm
