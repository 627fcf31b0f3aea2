// The copy of a server that another server keeps (a chain of two). All that changes tables goes
// there in the name of the worker that asked for it, and is confirmed to the worker when both have
// it. So the copy is a server like any other: when the first one dies, workers connect to it, it
// knows their last pushes, and nothing is lost.
//
// A copy that a worker has come to has taken the server's place, and refuses what the server sends
// from then on (deposed). A copy that cannot be reached is done without (alone): then the server
// tells its workers, which forget it, and looks for one that was started again. To such a copy,
// which has nothing, it gives its state as of one moment; what changes from then on waits and
// follows (catching up). Changes are confirmed without the copy meanwhile. When it has all of them,
// workers are told that there is a copy again.
//
// The same holds for a copy that has taken its server's place: its own copy is the server, started
// again at its old address.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fleetx/base/fd.h"
#include "fleetx/ps/ask_server.h"
#include "fleetx/ps/own_snapshot.h"
#include "fleetx/ps/server_link.h"
#include "fleetx/ps/server_state.h"

namespace fleetx::ps {

// What a copy refuses its server with.
inline constexpr std::string_view kTookPlace = "the copy has taken its place";

struct ReplicaOptions {
  comm::TcpIdentity identity;
  // Who knows where the copy is: the server that keeps it (asked by kCopy), or the copy itself
  // (kStandby).
  std::string partner;  // ip:port
  wire::Kind question = wire::Kind::kCopy;
  int server = 0;  // whose copy it is
  const JobSpec& job;
  bool dormant = false;  // until wake()
  // Calls it while nothing changes.
  std::function<void(const std::function<void()>& look)> stand_still;
  // Writes the state there; who has to be told to the copy (start 0: nobody). Nothing changes.
  std::function<std::vector<WorkerProgress>(const std::string& path)> save_state;
  std::string disk{};  // a file for the state; "": memory
};

class Replica {
 public:
  explicit Replica(ReplicaOptions options);
  ~Replica();

  enum class State { kDormant, kSeeking, kThere, kAlone, kCatchingUp, kDeposed };
  State state() const { return state_; }
  std::string endpoint() const;  // "" where there is none
  // The server itself has taken the place of another, which may come back as its copy.
  void wake();

  // The rest: while the caller keeps stand_still away.
  bool takes_changes() const { return state_ == State::kThere || state_ == State::kCatchingUp; }
  // A worker has come, with the number of its process: the copy is told.
  void greet(int worker, uint64_t start);
  // Passes a change on. done(): the copy has it, and all before it, or there is no copy.
  using Done = std::function<void()>;
  void forward(int worker, wire::Header header, std::string_view payload, Done done);
  // The same, with nothing to pass on.
  void after_all(int worker, Done done);

 private:
  struct Link {
    uint64_t start = 0;
    std::shared_ptr<ServerLink> link{};
    bool connected = false;
  };
  std::string whose() const;  // for messages
  void run();
  void pump(int milliseconds);
  void seek();
  void look_for_copy();
  void catch_up(const std::string& endpoint);
  void send_state(ServerQuestions& copy, const StateFile& file) const;
  bool connect_next();
  void connect(ServerLink& link);
  std::shared_ptr<ServerLink> make_link(int worker, uint64_t start, uint64_t first_sequence) const;
  void end(State state, const std::string& why);
  void send(int worker, LinkRequestPtr request, Done done);

  const ReplicaOptions options_;
  Fd epoll_, wake_;
  std::atomic<State> state_;
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> in_flight_{0};
  mutable std::mutex mutex_;
  std::string endpoint_;
  std::vector<Link> links_;       // by worker
  bool connects_at_once_ = true;  // a link, when it is made
  std::thread thread_;
};

}  // namespace fleetx::ps
