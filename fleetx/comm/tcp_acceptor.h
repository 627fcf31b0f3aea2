// Accepts the connections of other ranks and checks that they know the job's secret. Belongs to one
// thread, and never blocks it.
#pragma once

#include <functional>
#include <map>

#include "fleetx/comm/authenticate.h"
#include "fleetx/comm/tcp_tls.h"

namespace fleetx::comm {

// Who a connection is between, in what both sides prove.
struct TcpIdentity {
  std::string secret, job;
  std::shared_ptr<const TlsContext> tls{};  // null: not encrypted
  std::string self{};                       // in the log of who accepts; "": rank N
  std::string context(int from, int to, const Channel& channel) const;
};

class TcpAcceptor {
 public:
  // Called with the channel of a rank that has proved itself.
  using OnRank = std::function<void(int rank, std::unique_ptr<Channel>)>;
  // Watches its sockets in `epoll`; their event data is kFirstId and more.
  TcpAcceptor(Fd listener, int epoll, TcpIdentity identity, int rank, int size, OnRank on_rank);

  static constexpr uint64_t kFirstId = 1000;
  void on_event(uint64_t id);
  // Drops those that do not prove themselves in time; returns when the next is due.
  Deadline drop_late();

 private:
  struct Guest {
    std::unique_ptr<Channel> channel;
    Challenge challenge{};
    wire::Reader reader{};
    Deadline deadline{};
    bool greeted = false;
  };

  void accept_all();
  void serve(uint64_t id);
  bool advance(Guest& guest);
  void refuse(uint64_t id, const std::string& why);

  Fd listener_;
  const int epoll_;
  const TcpIdentity identity_;
  const int rank_, size_;
  const OnRank on_rank_;
  uint64_t next_id_ = kFirstId + 1;
  std::map<uint64_t, Guest> guests_;
  int refused_ = 0;
};

// The other side: connects as `from` to `to`, and proves itself. Throws ConnectionLost, or kComm if
// the secrets differ.
std::unique_ptr<Channel> connect_to_rank(const Endpoint& endpoint, const TcpIdentity& identity,
                                         int from, int to, Deadline deadline,
                                         const std::function<void()>& check);
// The same over a connection that has been made, to `name`.
std::unique_ptr<Channel> prove_to_rank(Fd socket, const std::string& name,
                                       const TcpIdentity& identity, int from, int to,
                                       Deadline deadline, const std::function<void()>& check);

}  // namespace fleetx::comm
