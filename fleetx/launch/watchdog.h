// Ends every process of a job when the launcher is gone, however it went (kill -9 included).
//
// The kernel kills the processes that the launcher started (PR_SET_PDEATHSIG). Their descendants,
// which may have forked twice and left their session, are found by a mark in their environment. A
// small child process does that when the launcher's end of a pipe closes.
#pragma once

#include <sys/types.h>

#include <string>

#include "fleetx/base/fd.h"

namespace fleetx::launch {

class Watchdog {
 public:
  // Forks: must be created while the program has one thread.
  Watchdog();
  // No process of the job is left: the watchdog exits without a scan.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // NAME=value for the environment of every process of the job.
  const std::string& mark() const { return mark_; }
  pid_t pid() const { return pid_; }

 private:
  std::string mark_;
  Fd pipe_;
  pid_t pid_ = -1;
};

// Kills all processes with this mark in their environment. Returns when none is left.
void kill_marked(const std::string& mark);

// Makes this process the parent of orphans of the job (subreaper), so that it can kill them.
void adopt_orphans();
// Kills all descendants of this process but `spare`, and reaps them.
void kill_descendants(pid_t spare);

// 2 * bytes random hex digits from the system.
std::string random_hex(size_t bytes);

}  // namespace fleetx::launch
