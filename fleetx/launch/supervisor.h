// Starts the processes of a job on this machine, watches them and stops them. Everything is an
// event: pidfds say who has ended, a signalfd what the user wants, a timerfd when patience ends.
//
// The first process that fails decides: it is named at once, the others get SIGTERM and, after the
// grace time, SIGKILL. In a parameter-server job the servers are stopped when the last worker has
// ended. When supervise() returns, no process of the job is left.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fleetx/base/job_env.h"
#include "fleetx/launch/console.h"
#include "fleetx/launch/process.h"

namespace fleetx::launch {

// Blocks the signals that fleetrun handles and makes them readable. Made before other threads are,
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
  bool speaks = false;  // its output is shown, besides going to the log
};

// What happened on another machine of the job.
struct News {
  std::string what;  // "worker 5 failed ...: exit code 3"; empty: all workers have ended
  int code = 0;
  bool by_user = false;
};

// How the supervisors of several machines work together.
struct Elsewhere {
  int news_fd = -1;  // readable when there is news
  std::function<std::optional<News>()> read_news;
  std::function<void(const std::string& what, int code, bool by_user)> tell_failure;
  std::function<void()> tell_workers_done;  // answered by news when they are everywhere
};

struct Supervision {
  int signal_fd = -1;
  double last_words_seconds = 0;  // between the first failure and SIGTERM to the others
  double grace_seconds = 5;       // between SIGTERM and SIGKILL
  std::string host;
  pid_t guard = -1;
  std::string vmstat = "/proc/vmstat";  // where the kernel counts what it killed for memory
  bool keep_old_log = false;            // a restart adds to the log
  bool terminal = false;                // processes that speak get a terminal, as fleetrun has one
  std::function<void()> on_started;     // all processes have their descriptors
  std::optional<Elsewhere> elsewhere;
  // The first failure on this machine, before the others are stopped.
  std::function<void(const Task& task, pid_t pid, const std::string& why)> on_failure;
  std::function<void(const Task& task, pid_t pid)> on_good_end;
};

struct Ended {
  std::string name;
  pid_t pid = -1;
  ExitStatus status;
  std::string why;  // status in words, with what we know about it
  double seconds = 0;
  std::string log_path;
};

struct Outcome {
  int code = 0;          // for exit(): of the first failure, or 128 + signal
  std::string verdict;   // "all 2 processes ended well", "worker 1 failed: exit code 3"
  bool by_user = false;  // stopped by a signal: no reason to start again
  double seconds = 0;
  std::vector<Ended> processes;
};

Outcome supervise(const std::vector<Task>& tasks, const Supervision& supervision, Console& console);

}  // namespace fleetx::launch
