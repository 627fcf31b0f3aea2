// What fleetrun does when a process of a job with parameter servers dies. The rules are data; docs
// (ps.md, "Who dies") show the same table.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fleetx/base/error.h"
#include "fleetx/base/job_env.h"

namespace fleetx::launch {

enum class AfterDeath {
  kStopJob,     // all processes are stopped; the exit code is that of the dead one
  kStartAgain,  // only the dead one, while the others go on
  kGoOn,        // the others go on without it; the exit code still tells that it failed
};

struct FaultRule {
  std::string_view mode;  // of the job, as its servers tell it
  JobRole role;
  AfterDeath first;  // as long as it may be started again
  AfterDeath last;   // after that
  bool needs_snapshot;
};

// Sync: what a worker was to add to a step is missing, and a server that comes back at an older
// step than the others would mix steps; so all begin again (--max_restart) or none. The other
// modes let workers come and go, and a server may go on from its last snapshot.
inline constexpr FaultRule kFaultRules[] = {
    {"sync", JobRole::kWorker, AfterDeath::kStopJob, AfterDeath::kStopJob, false},
    {"sync", JobRole::kServer, AfterDeath::kStopJob, AfterDeath::kStopJob, false},
    {"async", JobRole::kWorker, AfterDeath::kStartAgain, AfterDeath::kGoOn, false},
    {"async", JobRole::kServer, AfterDeath::kStartAgain, AfterDeath::kStopJob, true},
    {"half_async", JobRole::kWorker, AfterDeath::kStartAgain, AfterDeath::kGoOn, false},
    {"half_async", JobRole::kServer, AfterDeath::kStartAgain, AfterDeath::kStopJob, true},
    {"geo", JobRole::kWorker, AfterDeath::kStartAgain, AfterDeath::kGoOn, false},
    {"geo", JobRole::kServer, AfterDeath::kStartAgain, AfterDeath::kStopJob, true},
};

// Before these, in all modes: a server with a copy (--replicas=2) is started again, to become the
// copy of who took its place, as often as --max_restart says; then it is done without. Nothing is
// lost. But where its copy, or the server whose copy it kept, is dead or has not been given its
// state again, the job stops.

// In the store, where a server that was started again for the `restarts`-th time, and the copy that
// it keeps, have their state again.
inline std::string copied_key(int server, int restarts) {
  return str("fleetrun/copied/", server, "/", restarts);
}

// Of one process, where --max_restart is not given and its rule starts it again.
inline constexpr int kDefaultRestarts = 3;

// Who died, and what is known about its job.
struct Death {
  std::optional<std::string> mode{};  // nullopt: no server has told it; the job had not begun
  JobRole role = JobRole::kWorker;
  int restarts = 0;  // of this process so far
  std::optional<int> max_restart{};
  bool has_snapshot = false;   // of a server
  bool servers_ended = false;  // a server has, by itself: all workers had left it
  bool has_copy = false;       // of a server: another one has all of it (--replicas=2)
  bool kept_last = false;      // of a server: it kept what only another had that is dead
};

struct Reaction {
  AfterDeath action = AfterDeath::kStopJob;
  std::string why;   // for the log: "started again (1 of 3), the others go on (async)"
  bool lost = true;  // kGoOn: something is missing, so fleetrun fails in the end
};

Reaction react(const Death& death);

}  // namespace fleetx::launch
