// The rendezvous store as the launcher uses it. The implementation is in comm/, which this folder
// does not include: tools/fleetrun_store.cc connects the two.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleetx/launch/address.h"

namespace fleetx::launch {

// The store of the processes of a job. The launcher of the first machine serves it; the launchers
// of the others report the state of their processes to it.
class ProcessStore {
 public:
  virtual ~ProcessStore() = default;
  virtual Endpoint endpoint() const = 0;
  // Publishes the failure of a process, so that no process waits for it. rank: of a worker, else
  // -1.
  virtual void abort(int rank, const std::string& host, long pid, const std::string& what) = 0;
  // The worker whose failure was published first, and which all others end for; nullopt: none, or
  // not a worker's.
  virtual std::optional<int> failed_worker() const = 0;
  // A worker has ended with exit code 0: a failure if it never connected to the store.
  virtual void ended(int rank, const std::string& host, long pid) = 0;
  // From now on the store is watched for the next.
  virtual void listen_for_mode() = 0;
  // How a job with servers trains (sync, async, half_async, geo), as its servers have told it under
  // job_var::kModeKey; nullopt: not yet.
  virtual std::optional<std::string> mode() const = 0;
  // Whether a process has set the key.
  virtual bool has(const std::string& key) = 0;
};

// Connects the launchers of several machines. All calls throw kComm when a launcher fails or
// disconnects without leave(), kTimeout at their deadline.
class Link {
 public:
  virtual ~Link() = default;
  // All-gather: the values of all machines, by node.
  virtual std::vector<std::string> gather(const std::string& name, const std::string& value,
                                          double seconds) = 0;
  virtual void abort(const std::string& what) = 0;
  // This machine is done. The one that serves the store waits until all machines are.
  virtual void leave() = 0;
};

struct LinkFailure {
  int node = -1;  // -1: the store itself
  std::string host, what;
};

struct LinkOptions {
  Endpoint where{};
  bool serve = false;  // the first machine serves the store of the launchers
  int node = 0, nodes = 1;
  std::string secret{}, job{}, host{};
  bool retry_connect =
      false;           // after a restart: the store of the last attempt may still be closing
  double seconds = 0;  // timeout of the rendezvous
  std::function<void(const LinkFailure& failure)> on_failure{};  // called on another thread
};

struct Stores {
  using OpenStore = std::function<std::unique_ptr<ProcessStore>(
      const Endpoint& where, const std::string& secret, const std::string& job)>;
  OpenStore serve, connect;
  std::function<std::unique_ptr<Link>(const LinkOptions& options)> link;
};

}  // namespace fleetx::launch
