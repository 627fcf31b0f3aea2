// The launchers of the other machines of a job. They agree on the job before it starts, report the
// first failure to each other, and learn when all workers have ended.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fleetx/base/fd.h"
#include "fleetx/launch/plan.h"
#include "fleetx/launch/store.h"
#include "fleetx/launch/supervisor.h"

namespace fleetx::launch {

class PeerLaunchers {
 public:
  // Blocks until all launchers are connected.
  PeerLaunchers(const Stores& stores, LinkOptions options);
  PeerLaunchers(const PeerLaunchers&) = delete;
  PeerLaunchers& operator=(const PeerLaunchers&) = delete;

  std::vector<std::string> gather(const std::string& name, const std::string& value);

  // For the supervisor.
  int event_fd() const { return event_.get(); }
  std::optional<PeerEvent> next_event();
  void report_failure(const std::string& what, int code, bool by_user);
  // The workers of this machine have ended. An event follows when those of all machines have.
  // With the one that was given up there, if any: the event has the first of all machines.
  void workers_done(const std::string& what, int code);

 private:
  void post(PeerEvent event);

  double seconds_;
  Fd event_;
  std::mutex mutex_;
  std::deque<PeerEvent> events_;
  std::unique_ptr<Link> link_;
  std::jthread waiting_;  // destroyed before the link
};

// All machines must have been started with flags that give the same job. The error names the
// machine that differs.
void check_same_job(const JobPlan& plan, const std::vector<std::string>& descriptions);
std::string description_of(const JobPlan& plan);

}  // namespace fleetx::launch
