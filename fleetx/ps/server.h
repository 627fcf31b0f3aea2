// A parameter server: holds its part of all tables and serves the workers of one job. Sockets of
// our own (TCP, and Unix sockets for workers of the same host), frames as in wire.h; every
// connection proves the job's secret.
//
//   Server server({.job = spec, .index = 0, .endpoint = "10.0.0.1:6170", .secret = ...});
//   server.run();  // until all workers have said goodbye
//
// A push carries (worker, sequence number) and is applied once, however often a worker had to send
// it. A worker whose connection ends without goodbye, or that is silent, is lost after
// `worker_timeout`: in sync mode all others are told its name, in async mode they go on and it may
// come back.
//
// With a `snapshot` file an async server saves itself every `snapshot_interval`. One that is
// started again and calls restore() goes on from there: its workers connect again, and it logs
// which of the pushes that it had confirmed to them are lost. (In sync mode the servers would be at
// different steps, so nothing is saved, and workers refuse a server that was started again.)
//
// With copies (`copied_by` the next server, `keeps_copy_of` the one before it, on all servers of a
// job) a push is confirmed when both have it, and workers go on with the copy when a server is
// lost. One that is started again (`blank`) is given the state of who took its place, and of the
// server whose copy it keeps, and is their copy from then on (replica.h).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleetx/ps/job_spec.h"
#include "fleetx/ps/memory_budget.h"
#include "fleetx/ps/stats.h"
#include "fleetx/ps/wire.h"

namespace fleetx::ps {

struct ServerOptions {
  JobSpec job;
  int index = 0;                   // which of the job's servers
  std::string endpoint;            // ip:port; port 0: the system chooses
  std::optional<int> listen_fd{};  // a socket already bound to the endpoint
  std::string secret, job_id = "default";
  int threads = 1;
  MemoryLimits memory{};
  std::chrono::milliseconds worker_timeout{4'000};
  // A server whose workers are all lost or have left waits this long for one to come back.
  std::chrono::milliseconds orphan_timeout{60'000};
  // Replicas: ip:port of the server that keeps a copy of this one ("": none), and of the one before
  // it in the list, whose copy this one keeps (replica.h).
  std::string copied_by{}, keeps_copy_of{};
  bool is_copy = false;  // of server `index`, kept by another; takes its place when workers come
  bool blank = false;    // was started again, and waits for what others have in its place
  // Of one that was blank: it has all of it, and so has the copy that it keeps. From any thread.
  std::function<void()> on_complete{};
  std::string snapshot{};  // a file; empty: none
  std::chrono::milliseconds snapshot_interval{60'000};
};

class Server {
 public:
  explicit Server(ServerOptions options);  // listens; a port that is held is an error that names it
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string endpoint() const;
  // What this server holds of a snapshot that any number of servers has written; before run().
  void load(const std::string& folder);
  // What this server has saved of itself; before run().
  void restore();
  // Serves until all workers have said goodbye, or stop(). Throws kComm if all workers that had not
  // are lost.
  void run();
  void stop();  // from any thread
  // Of two that have the same tables, which one it is.
  wire::Part part() const;
  ServerStats stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fleetx::ps
