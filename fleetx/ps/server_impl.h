// The inside of a server: server.cc has its sockets and requests, server_members.cc its workers,
// server_copies.cc the other one that has the same tables, server_commands.cc what takes long, and
// what it tells about itself.
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <thread>

#include "fleetx/ps/change_gate.h"
#include "fleetx/ps/identity.h"
#include "fleetx/ps/own_snapshot.h"
#include "fleetx/ps/replica.h"
#include "fleetx/ps/server.h"
#include "fleetx/ps/server_connection.h"
#include "fleetx/ps/server_state.h"
#include "fleetx/ps/table_service.h"

namespace fleetx::ps {

using ConnectionPtr = std::shared_ptr<ServerConnection>;

class Server::Impl {
 public:
  explicit Impl(ServerOptions options);
  ~Impl() { stop_all(); }

  std::string endpoint() const { return to_string(endpoint_); }
  std::string name() const {
    return str(options_.is_copy ? "the copy of server " : "server ", options_.index);
  }
  wire::Part part() const { return part_; }
  void load(const std::string& folder);
  void restore();
  int copy_index() const {
    return (options_.index + options_.job.servers - 1) % options_.job.servers;
  }
  void run();
  void stop();
  void stop_all();  // also the copy that it keeps
  ServerStats stats() const;

 private:
  enum class State { kNeverSeen, kConnected, kDisconnected, kLost, kGone };
  // What a worker has done; outlives its connections.
  struct Session {
    std::mutex pushing;            // a push is looked up and applied as one
    uint64_t start = 0, last = 0;  // number of the process; last push applied
    std::atomic<uint64_t> applied{0};
    // The rest: with members_mutex_.
    State state = State::kNeverSeen;
    comm::Clock::time_point heard{}, disconnected{};
    ConnectionPtr connection;
    uint64_t barrier = 0;  // that it has come to
    bool left = false;     // its goodbye was answered
  };
  // Where connections come in. The acceptor numbers its guests in an epoll of its own.
  struct Door {
    Fd epoll{epoll_create1(EPOLL_CLOEXEC)};
    std::unique_ptr<comm::TcpAcceptor> acceptor{};
    void serve() {
      epoll_event events[16];
      const int n = epoll_wait(epoll.get(), events, 16, 0);
      for (int i = 0; i < n; ++i) acceptor->on_event(events[i].data.u64);
      acceptor->drop_late();
    }
  };
  // A thread and the connections it reads from.
  struct Loop {
    Fd epoll{epoll_create1(EPOLL_CLOEXEC)}, wake{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    std::mutex mutex;
    std::map<int, ConnectionPtr> connections;
    std::thread thread;
  };

  MemoryLimits memory_of(const char* whose) const;
  void accepted(int rank, std::unique_ptr<comm::Channel> channel);
  void serve(Loop& loop);
  void read_from(Loop& loop, const ConnectionPtr& connection);
  void drop(Loop& loop, const ConnectionPtr& connection, const std::string& why);
  uint64_t payload_bytes(const ServerConnection& connection, const wire::Header& h) const;
  void handle(const ConnectionPtr& connection, const wire::Header& h, Payload& payload);
  void heard_of(const ConnectionPtr& connection);
  void on_hello(const ConnectionPtr& connection, const wire::Header& h, const Payload& payload);
  void check_number(int worker, const wire::Hello& hello);
  void accept_losses(int worker, const wire::Hello& hello);
  bool began_as_standby() const { return options_.is_copy || options_.blank; }
  void check_part(int worker, const wire::Hello& hello);
  void check_has_all(int worker, const wire::Hello& hello);
  void take_place();
  void make_replica();
  std::vector<WorkerProgress> save_state(const std::string& path);
  void on_state(const ConnectionPtr& connection, const wire::Header& h, const Payload& payload);
  void follow();
  void forget();
  void complete();
  void look_for_state();
  void answer(const ConnectionPtr& connection, const wire::Header& h, uint64_t count = 0);
  void run_copy();
  void finish_copy();
  void check_not_deposed();
  // Replies when the copy, if there is one, has it too. With what was asked.
  void confirm(const ConnectionPtr& connection, const wire::Header& h, std::string_view payload,
               uint64_t count = 0, std::function<void()> then = nullptr);
  void on_push(const ConnectionPtr& connection, const wire::Header& h, Payload& payload);
  void on_barrier(const ConnectionPtr& connection, const wire::Header& h);
  void on_goodbye(const ConnectionPtr& connection, const wire::Header& h);
  void on_slow(const ConnectionPtr& connection, const wire::Header& h, const Payload& payload);
  void run_slow();
  uint64_t shrink(const wire::Header& h);
  void answer_barriers();
  void look_for_lost();
  void look_for_absent();
  std::string why_lost(size_t worker, const Session& session) const;
  void lose(int worker, const std::string& why);
  void snapshot_if_due();
  void save_own();

  const ServerOptions options_;
  const comm::TcpIdentity identity_;
  comm::Endpoint endpoint_;
  PayloadPool pool_;
  TableService tables_;
  const comm::Clock::time_point begin_ = comm::Clock::now();

  Fd epoll_{epoll_create1(EPOLL_CLOEXEC)}, wake_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::vector<Door> doors_;
  std::vector<std::unique_ptr<Loop>> loops_;
  size_t next_loop_ = 0;
  std::atomic<bool> stop_{false};
  std::string fatal_;

  // For whoever changes tables and what sessions know of pushes; taken before their locks.
  ChangeGate gate_;
  std::unique_ptr<Server> copy_;  // that it keeps
  std::thread copy_thread_;
  std::atomic<bool> copy_ended_{false};
  std::unique_ptr<Replica> replica_;  // of itself
  std::atomic<wire::Part> part_;
  std::mutex state_mutex_;                              // of the next two
  std::unique_ptr<StateFile> state_;                    // that it is being given
  comm::Clock::time_point asked_ = comm::Clock::now();  // blank: when it was heard of
  std::atomic<int> incomplete_{0};                      // of itself and the copy that it keeps
  const uint64_t start_ = random_number();
  bool restored_ = false;
  comm::Clock::time_point serving_since_, next_snapshot_;
  std::atomic<bool> saving_{false}, snapshot_now_{false};

  mutable std::mutex members_mutex_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<Request> barriers_;
  comm::Clock::time_point orphaned_{}, notice_absent_ = comm::Clock::time_point::max();

  std::mutex slow_mutex_;
  std::condition_variable slow_changed_;
  std::deque<std::function<void()>> slow_;
  std::thread slow_thread_;
  std::pair<uint64_t, uint64_t> last_shrink_{};  // number and result; of the slow thread

  std::atomic<int64_t> pulls_{0}, pushes_{0}, repeated_{0}, bytes_in_{0}, bytes_out_{0};
  RateMeter pull_rate_, push_rate_;
};

}  // namespace fleetx::ps
