// The rendezvous store: a small table of keys that the processes of a job meet in, kept by the
// launcher (not by a rank, so that it outlives any of them). It also tells everybody about the
// first failure: a rank whose connection ends without a goodbye, one that the launcher saw die, or
// one that the others wait for in vain.
//
//   StoreServer server({.listen = {"127.0.0.1", 0}, .secret = make_secret()});     // launcher
//   StoreClient store(store_options_from_env(rank));                               // each rank
//   auto addresses = store.gather("gloo", rank, size, my_address);
//
// Every connection proves the job's secret by HMAC-SHA256, in both directions, before it is
// listened to. n ranks that gather or meet at a barrier cost 2 n messages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleetx/comm/socket.h"

namespace fleetx::comm {

// Who failed, and how, in words: "rank 2 on host b (pid 71) ...".
struct Failure {
  int rank = -1;  // -1: not a rank (the launcher, the store)
  std::string host;
  int64_t pid = 0;
  std::string what;
  bool hangs = false;  // waited for in vain, as opposed to gone
};
std::string to_string(const Failure& failure);

std::string make_secret();  // 32 random bytes, in hex

// One thread; everything it does is bounded. Thread-safe.
class StoreServer {
 public:
  struct Options {
    Endpoint listen{"127.0.0.1", 0};
    int listen_fd = -1;  // an open listening socket instead; the server closes it
    std::string secret{}, job{};
    size_t most_bytes = size_t{256} << 20;  // of all keys and values
    size_t most_connections = 16384;
    // Called once, on the server's thread; must not block.
    std::function<void(const Failure&)> on_failure{};
  };
  explicit StoreServer(Options options);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  Endpoint endpoint() const;
  std::string address() const { return to_string(endpoint()); }  // for FLEETX_STORE
  // Tells all clients, now and later. The first failure stays.
  void abort(const Failure& failure);
  // This rank has ended, though not badly: a failure if it has never been here, since the others
  // would wait for it in vain.
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
  std::string host{};            // how errors call this machine; empty: its name
  Milliseconds timeout{60'000};  // to connect, and of calls that do not say otherwise
};
// From FLEETX_STORE, FLEETX_JOB_SECRET and FLEETX_JOB_ID.
StoreOptions store_options_from_env(int rank);

// A connection to the store. Thread-safe. All calls throw kComm once a failure is known, naming
// it, also while they wait; kTimeout at their deadline.
class StoreClient {
 public:
  explicit StoreClient(StoreOptions options);
  // Says goodbye, unless an exception is under way: then the others learn that this rank failed.
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  const StoreOptions& options() const;

  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key, Milliseconds timeout = {});  // waits until it is there
  void wait(const std::string& key, Milliseconds timeout = {}) { get(key, timeout); }
  int64_t add(const std::string& key, int64_t amount);  // to a counter; gives the sum
  // Each of `count` callers with an index of its own gets the values of all, by index. A name can
  // be used again once all have been here.
  std::vector<std::string> gather(const std::string& name, int index, int count,
                                  const std::string& value, Milliseconds timeout = {});
  void barrier(const std::string& name, int index, int count, Milliseconds timeout = {});

  // Publishes a failure.
  void abort(const Failure& failure);
  void ended(const Failure& end);  // as the server's
  // Says that this rank waited for another in vain. The store hears everybody who says so for a
  // moment, and blames one who is waited for and does not wait itself. Gives the failure that it
  // names.
  Failure suspect(const Failure& failure);
  std::optional<Failure> failure() const;
  bool failed() const;  // cheap enough for a waiting loop
  // Called on the client's own thread when a failure becomes known (at once if it is). The result
  // ends the watch when it is destroyed, which must be before the client is.
  using Watch = std::shared_ptr<void>;
  [[nodiscard]] Watch on_failure(std::function<void(const Failure&)> fn);
  // From now on the end of the connection is not a failure of this rank.
  void leave();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fleetx::comm
