// One process: how it is started, and how its end is put into words.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "fleetx/base/fd.h"

namespace fleetx::launch {

struct Command {
  std::vector<std::string> argv;  // argv[0] is the path of the program
  std::vector<std::string> environment;
  std::vector<int> cpus;  // pinned to these; empty: wherever the system likes
  int listen_fd = -1;     // the one descriptor besides 0, 1, 2 that it inherits
};

struct Child {
  pid_t pid = -1;
  Fd pidfd;  // readable when the process has ended
};

// Starts the command in a session of its own, with `output` as stdout and stderr and nothing to
// read. It is killed when the calling thread ends. A program that cannot be executed says so on
// `output` and ends with 126, as in a shell.
Child spawn(const Command& command, int output);

// Sends a signal to the process and all it has started in its session's first group.
void signal_group(const Child& child, int signal);

// What waitid told.
struct ExitStatus {
  int code = 0;    // where signal is 0
  int signal = 0;  // the signal that killed it
  bool core = false;
  bool ok() const { return code == 0 && signal == 0; }
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};
ExitStatus reap(const Child& child);  // after pidfd has become readable

std::string signal_name(int signal);             // "SIGTERM"
std::string in_words(const ExitStatus& status);  // "exit code 3", "SIGSEGV (segmentation fault)"

// Counts processes that the kernel killed for lack of memory, all since boot.
long count_oom_kills(const std::string& vmstat);

// The path to execute for a program or script; looks through PATH where the name has no slash and
// there is no such file here. `.py` files are run by `python`. Errors say what is wrong with it.
std::vector<std::string> command_line(const std::string& script,
                                      const std::vector<std::string>& args,
                                      const std::string& python, const std::string& path_variable);

}  // namespace fleetx::launch
