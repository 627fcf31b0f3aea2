// The rendezvous store: a key-value table for the processes of a job, served by the launcher (not
// by a rank, so that it outlives any of them). It also publishes the first failure to all clients:
// a rank whose connection ends without leave(), one that the launcher saw die, or one that hangs.
//
//   StoreServer server({.listen = {"127.0.0.1", 0}, .secret = make_secret()});     // launcher
//   StoreClient store(store_options_from_env(rank));                               // each rank
//   auto addresses = store.gather("addresses", rank, size, my_address);
//
// Both sides of a connection authenticate with the job's secret by HMAC-SHA256. A gather or barrier
// of n ranks costs 2 n messages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleetx/comm/socket.h"

namespace fleetx::comm {

// Which rank failed and how; as text: "rank 2 on host b (pid 71) ...".
struct Failure {
  int rank = -1;  // -1: the launcher or the store
  std::string host;
  int64_t pid = 0;
  std::string what;
  bool hangs = false;  // it does not answer, as opposed to gone
};
std::string to_string(const Failure& failure);

std::string make_secret();  // 32 random bytes, in hex

// Runs on one thread with bounded memory. Thread-safe.
class StoreServer {
 public:
  struct Options {
    Endpoint listen{"127.0.0.1", 0};
    int listen_fd = -1;  // an open listening socket instead; the server closes it
    std::string secret{}, job{};
    size_t max_bytes = size_t{256} << 20;  // of all keys and values
    size_t max_connections = 16384;
    // Called once, on the server's thread; must not block.
    std::function<void(const Failure&)> on_failure{};
  };
  explicit StoreServer(Options options);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  Endpoint endpoint() const;
  std::string address() const { return to_string(endpoint()); }  // for FLEETX_STORE
  // Publishes a failure to all clients, present and future. Only the first one counts.
  void abort(const Failure& failure);
  // This rank has ended with exit code 0. It is a failure if the rank has never connected, since
  // its peers would wait for it until their timeout.
  void ended(const Failure& end);
  std::optional<Failure> failure() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

struct StoreOptions {
  Endpoint server{};
  std::string secret{}, job{};
  int rank = -1;                 // of the process; -1: its end is no failure (a tool, a test)
  std::string host{};            // for error messages; empty: the host name
  Milliseconds timeout{60'000};  // to connect, and the default of calls
};
// From FLEETX_STORE, FLEETX_JOB_SECRET and FLEETX_JOB_ID.
StoreOptions store_options_from_env(int rank);

// A connection to the store. Thread-safe. All calls throw kComm with the published failure, also
// while they wait; kTimeout at their deadline.
class StoreClient {
 public:
  explicit StoreClient(StoreOptions options);
  // Calls leave(), unless an exception is in flight: then the store publishes that this rank
  // failed.
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  const StoreOptions& options() const;

  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key, Milliseconds timeout = {});  // waits for the key
  void wait(const std::string& key, Milliseconds timeout = {}) { get(key, timeout); }
  int64_t add(const std::string& key, int64_t amount);  // to a counter; returns the sum
  // All-gather: each of `count` callers contributes the value of its index and gets all values. A
  // name can be reused once all callers have returned.
  std::vector<std::string> gather(const std::string& name, int index, int count,
                                  const std::string& value, Milliseconds timeout = {});
  void barrier(const std::string& name, int index, int count, Milliseconds timeout = {});

  // Publishes a failure.
  void abort(const Failure& failure);
  void ended(const Failure& end);  // as the server's
  // Reports that another rank did not answer. The store collects such reports for a moment and
  // picks a rank that is waited for and does not wait itself, or else the one that most ranks
  // report. Returns the failure that it publishes.
  Failure suspect(const Failure& failure);
  std::optional<Failure> failure() const;
  bool failed() const;  // cheap enough for a spin loop
  // Calls fn on the client's thread when a failure is published (at once if one was). Destroying
  // the result unregisters fn; it must not outlive the client.
  using Watch = std::shared_ptr<void>;
  [[nodiscard]] Watch on_failure(std::function<void(const Failure&)> fn);
  // From now on the end of this connection is not a failure.
  void leave();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fleetx::comm
