// Starts, monitors and stops the processes of a job on this machine. One event loop: pidfds report
// exits, a signalfd signals of the user, timerfds timeouts.
//
// The first failure decides the outcome: it is reported at once, and the other processes get
// SIGTERM and, after the grace period, SIGKILL. In a parameter-server job the servers are stopped
// when the last worker has ended, and a process that fails may be started again, or be done
// without, as `on_death` says. When supervise() returns, no process of the job is left.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fleetx/base/job_env.h"
#include "fleetx/launch/console.h"
#include "fleetx/launch/fault_policy.h"
#include "fleetx/launch/process.h"

namespace fleetx::launch {

// Blocks the signals that fleetrun handles and makes them readable. Created before other threads,
// so that they inherit the mask.
class Signals {
 public:
  Signals();
  int fd() const { return fd_.get(); }

 private:
  Fd fd_;
};

struct Task {
  std::string name;  // "worker 1"
  JobRole role = JobRole::kWorker;
  int rank = 0;  // in its role
  Command command;
  std::string log_path;
  bool show_output = false;  // on the console, besides the log
};

// An event on another machine of the job.
struct PeerEvent {
  std::string what;  // "worker 5 failed ...: exit code 3"
  int code = 0;
  bool by_user = false;
  // All workers of all machines have ended; what and code: of one that the job did without.
  bool workers_done = false;
};

// The connection to the supervisors of the other machines.
struct PeerHooks {
  int event_fd = -1;  // readable when there is an event
  std::function<std::optional<PeerEvent>()> next_event;
  std::function<void(const std::string& what, int code, bool by_user)> report_failure;
  // An event follows when all machines have reported it. With a worker that was given up, if any.
  std::function<void(const std::string& what, int code)> report_workers_done;
};

struct Supervision {
  int signal_fd = -1;
  double error_log_seconds = 0;  // from the first failure to SIGTERM: the others log their errors
  double grace_seconds = 5;      // between SIGTERM and SIGKILL
  std::string host;
  pid_t watchdog = -1;
  std::string vmstat = "/proc/vmstat";  // has the count of OOM kills
  bool keep_old_log = false;            // a restart appends to the log
  bool terminal = false;  // fleetrun has a terminal: processes with show_output get one, too
  // All processes have inherited their descriptors; also after one was started again.
  std::function<void()> on_started;
  std::optional<PeerHooks> peers;
  // The first failure on this machine, before the other processes are stopped.
  std::function<void(const Task& task, pid_t pid, const std::string& why)> on_failure;
  std::function<void(const Task& task, pid_t pid)> on_success;
  // Whether a process has failed because another one did, on another machine, whose launcher
  // reports it; none: never.
  std::function<bool(const Task& task)> is_consequence;
  // What to do about a process that was started again so often; none: the job stops.
  std::function<Reaction(const Task& task, int restarts, bool servers_ended)> on_death;
  // The command that starts it for the `restarts`-th time again. Throws what prevents it.
  std::function<Command(const Task& task, int restarts)> start_again;
  // A process that is stopped (SIGSTOP) for so long is named and killed; 0: never.
  double stopped_seconds = 0;
};

struct EndedProcess {
  std::string name;
  pid_t pid = -1;
  ExitStatus status;
  std::string why;  // the status as text, with its cause if known
  double seconds = 0;
  std::string log_path;
};

struct Outcome {
  int code = 0;          // for exit(): of the first failure, or 128 + signal
  std::string verdict;   // "all 2 processes ended well", "worker 1 failed: exit code 3"
  bool went_on = false;  // without a worker that failed: the job came to its end
  bool by_user = false;  // stopped by a signal: no restart
  double seconds = 0;
  std::vector<EndedProcess> processes;
};

Outcome supervise(const std::vector<Task>& tasks, const Supervision& supervision, Console& console);

}  // namespace fleetx::launch
