// Ends every process of a job when the launcher is gone, however it went (kill -9 included).
//
// The processes that the launcher started are killed by the kernel (PR_SET_PDEATHSIG). Processes
// that these have started, perhaps by forking twice and leaving their session, are found by a mark
// in their environment. That is done by a small process of its own, which waits for the launcher's
// end of a pipe to close.
#pragma once

#include <sys/types.h>

#include <string>

#include "fleetx/base/fd.h"

namespace fleetx::launch {

class Guard {
 public:
  // Must be made while the program has one thread.
  Guard();
  // The job has ended well or badly and nothing of it is left: the guard goes without a look.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // NAME=value, for the environment of every process of the job.
  const std::string& mark() const { return mark_; }
  pid_t pid() const { return pid_; }

 private:
  std::string mark_;
  Fd pipe_;
  pid_t pid_ = -1;
};

// Kills all processes with this mark in their environment; returns when none is left.
void kill_marked(const std::string& mark);

// Makes this process the parent of processes whose parents have died, so that it can end them.
void adopt_orphans();
// Kills all descendants of this process but `spare`, and reaps them.
void kill_descendants(pid_t spare);

// 2 * bytes hex digits from the system's random numbers.
std::string random_hex(size_t bytes);

}  // namespace fleetx::launch
