// A worker's connection to one server: requests in the order they were given, replies in any. When
// the connection breaks it is made again, and what was not answered is sent again in the same
// order. One thread (of the client) reads and keeps it alive; any thread may submit.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/comm/tcp_acceptor.h"
#include "fleetx/ps/client.h"
#include "fleetx/ps/payload.h"
#include "fleetx/ps/wire.h"

namespace fleetx::ps {

// With a text of its own: copies of an exception share theirs, which tools that look for data races
// take for one.
Error copy(const Error& error);

// Answers of all servers that a call went to.
struct Ticket::State {
  std::mutex mutex;
  std::condition_variable changed;
  int left = 0;  // servers
  std::optional<Error> error{};
  std::function<void()> finish{};  // by who waits, once
  std::function<void(const Error&)> on_error{};
  std::function<void()> on_done{};
  std::vector<std::string> texts;  // replies without a place of their own, by server
  std::vector<uint64_t> counts;
  comm::Deadline deadline{};

  void answer(const Error* error_of_server);
};

struct LinkRequest {
  wire::Header header;
  std::vector<iovec> send{};                // payload
  std::vector<iovec> into{};                // where the payload of the reply goes; empty: a text
  std::shared_ptr<const void> keeps[2]{};   // memory of `send` and `into`
  std::shared_ptr<Ticket::State> ticket{};  // null: a ping
  comm::Deadline deadline{};
};
using LinkRequestPtr = std::shared_ptr<LinkRequest>;

struct LinkOptions {
  comm::TcpIdentity identity;
  comm::Endpoint endpoint;
  int worker = 0, server = 0;
  wire::Hello hello;
  std::chrono::milliseconds reconnect_timeout{}, silence{};
  size_t dense_tables = 0;
  uint64_t id = 0;              // of its events in the epoll, from 1 on
  uint64_t first_sequence = 1;  // of its pushes
  // Who has all that a server of which the process is gone has confirmed; by the client's thread.
  std::function<std::optional<comm::Endpoint>(int server)> find_copy{};
};

// What a standby (wire::Part) refuses workers with that do not know it as the copy of a server that
// they cannot reach.
inline constexpr std::string_view kIsStandby = "is not active: its copy is in its place";
// And a worker whose number another process has that is alive.
inline constexpr std::string_view kHasNumber =
    " is connected already, by another process: each worker of the job needs a number of its own "
    "(PADDLE_TRAINER_ID, or current_id of its role maker)";

class ServerLink {
 public:
  ServerLink(LinkOptions options, int epoll);

  std::string name() const;  // "parameter server 1 at 10.0.0.1:6170"
  // Connects, once. Throws comm::ConnectionLost, or what the server refuses the worker for.
  wire::Welcome connect(comm::Deadline deadline);
  // Before that: the server's copy is in its place, there.
  void go_to(const comm::Endpoint& copy);

  void submit(LinkRequestPtr request);
  // Ids are what the request sends first: between hosts as deltas, where they are smaller so.
  void put_ids(LinkRequest& request, std::span<const uint64_t> ids,
               std::shared_ptr<const void> owner) const;

  // By the client's thread.
  bool on_event(uint32_t events);  // false: the connection is lost
  // Pings, deadlines, reconnecting.
  void tick();
  // From now on it is connected again only for what is still to be answered.
  void leave();
  // Unanswered requests fail; no reconnecting any more.
  void close(const Error& why);

 private:
  using Lock = std::unique_lock<std::mutex>;
  void read(Lock& lock);
  bool read_some();
  void begin_reply();
  void end_reply();
  void write_soon(size_t bytes);
  void write();
  void lose(const std::string& why);
  void expire();
  void check_server(const wire::Welcome& welcome);
  void confirm(const wire::Header& push);
  void name_if_silent(const std::string& why);
  bool go_to_copy(const std::string& why);
  void look_for_copy();
  void watch(int action, uint32_t events);

  const LinkOptions options_;
  const int epoll_;

  mutable std::mutex mutex_;
  comm::Endpoint at_;                   // changed by the client's thread
  std::optional<comm::Endpoint> copy_;  // who takes the server's place
  std::unique_ptr<comm::Channel> channel_;
  std::atomic<bool> is_local_{true};  // the server is on this host
  std::optional<Error> failed_;
  std::string broken_;  // why the connection was lost
  comm::Clock::time_point heard_{}, sent_at_{}, next_try_{};
  uint64_t next_request_ = 1, next_sequence_;
  // What the server has confirmed, and which process it was.
  uint64_t server_start_ = 0, confirmed_ = 0, barrier_ = 0;
  std::vector<uint64_t> confirmed_pushes_;  // of each table
  bool named_ = false;                      // in the log, as silent
  bool takes_over_ = false;                 // it has gone to the copy
  bool has_copies_ = false;                 // now or at another time

  std::deque<LinkRequestPtr> unsent_;
  std::map<uint64_t, LinkRequestPtr> sent_;  // not answered
  std::vector<LinkRequestPtr> answered_;     // to be told outside of the lock
  std::vector<std::pair<LinkRequestPtr, Error>> refused_;

  LinkRequestPtr writing_;
  wire::HeaderBytes out_header_{};
  std::vector<iovec> out_;
  size_t out_part_ = 0;
  bool watched_out_ = false, writes_ = true, leaving_ = false;

  wire::HeaderBytes in_header_{};
  size_t have_header_ = 0;
  wire::Header header_;
  LinkRequestPtr reading_;
  std::vector<iovec> in_;
  size_t in_part_ = 0;
  Payload text_;
};

}  // namespace fleetx::ps
