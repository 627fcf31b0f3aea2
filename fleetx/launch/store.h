// What the launcher needs of the rendezvous store. comm/ has the store; this folder does not see
// comm/, so the command's main connects the two.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fleetx/launch/address.h"

namespace fleetx::launch {

// Where the processes of the job meet. Served by the launcher of the first machine; those of the
// others tell it what happens to theirs.
class ProcessStore {
 public:
  virtual ~ProcessStore() = default;
  virtual Endpoint endpoint() const = 0;
  // Tells all processes that one of them has failed, so that nobody waits for it. Rank: of a
  // worker; -1: it is none.
  virtual void abort(int rank, const std::string& host, long pid, const std::string& what) = 0;
  // A worker has ended well. Those that wait for one which never came are told.
  virtual void ended(int rank, const std::string& host, long pid) = 0;
};

// Connects the launchers of several machines. All calls end with kComm when a launcher fails or
// goes without a goodbye, with kTimeout at their deadline.
class Link {
 public:
  virtual ~Link() = default;
  // The values of all machines, by machine; each must call it.
  virtual std::vector<std::string> gather(const std::string& name, const std::string& value,
                                          double seconds) = 0;
  virtual void abort(const std::string& what) = 0;
  // This machine needs the others no more. The one that keeps the store waits until all say so.
  virtual void leave() = 0;
};

struct LinkFailure {
  int node = -1;  // -1: the store itself
  std::string host, what;
};

struct LinkOptions {
  Endpoint where{};
  bool serve = false;  // the first machine keeps the store in which the launchers meet
  int node = 0, nodes = 1;
  std::string secret{}, job{}, host{};
  bool again = false;  // after a restart: the store of the last attempt may still be there
  double seconds = 0;  // to find each other
  std::function<void(const LinkFailure& failure)> on_failure{};  // called on another thread
};

struct Stores {
  using OpenStore = std::function<std::unique_ptr<ProcessStore>(
      const Endpoint& where, const std::string& secret, const std::string& job)>;
  OpenStore serve, connect;
  std::function<std::unique_ptr<Link>(const LinkOptions& options)> link;
};

}  // namespace fleetx::launch
