// The copy of a server that another server keeps (a chain of two). All that changes tables goes
// there in the name of the worker that asked for it, and is confirmed to the worker when both have
// it. So the copy is a server like any other: when the first one dies, workers connect to it, it
// knows their last pushes, and nothing is lost.
//
// A copy that a worker has come to has taken the server's place, and refuses what the server sends
// from then on (deposed). A copy that cannot be reached is done without (lost): then the server
// tells its workers, which forget it.
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
#include "fleetx/ps/server_link.h"

namespace fleetx::ps {

// What a copy refuses its server with.
inline constexpr std::string_view kTookPlace = "the copy has taken its place";

struct ReplicaOptions {
  comm::TcpIdentity identity;
  std::string keeper;  // ip:port of the server that keeps the copy
  int server = 0;      // whose copy it is
  const JobSpec& job;
};

class Replica {
 public:
  explicit Replica(ReplicaOptions options);
  ~Replica();

  enum class State { kSeeking, kThere, kLost, kDeposed };
  State state() const { return state_; }
  std::string endpoint() const;  // "" where there is none

  // A worker has come, with the number of its process: the copy is told.
  void greet(int worker, uint64_t start);
  // Passes a change on. done(): the copy has it, and all before it, or there is no copy any more.
  using Done = std::function<void()>;
  void forward(int worker, wire::Header header, std::string_view payload, Done done);
  // The same, with nothing to pass on.
  void after_all(int worker, Done done);

 private:
  void run();
  void seek();
  void end(State state, const std::string& why);
  void send(int worker, LinkRequestPtr request, Done done);

  const ReplicaOptions options_;
  Fd epoll_, wake_;
  std::atomic<State> state_{State::kSeeking};
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::string endpoint_;
  struct Link {
    uint64_t start = 0;
    std::shared_ptr<ServerLink> link;
  };
  std::vector<Link> links_;  // by worker
  std::thread thread_;
};

}  // namespace fleetx::ps
