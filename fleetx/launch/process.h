// Starts one process, and describes its exit status.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "fleetx/base/fd.h"

namespace fleetx::launch {

struct Command {
  std::vector<std::string> argv;  // argv[0] is the path of the program
  std::vector<std::string> environment;
  std::vector<int> cpus;  // pinned to these; empty: not pinned
  int listen_fd = -1;     // the one descriptor besides 0, 1, 2 that it inherits
};

struct Child {
  pid_t pid = -1;
  Fd pidfd;  // readable when the process has ended
};

// Starts the command in its own session, with `output` as stdout and stderr and /dev/null as stdin.
// It is killed when the calling thread ends. If it cannot be executed, it writes why to `output`
// and exits with 126, as a shell does.
Child spawn(const Command& command, int output);

// Signals the process group of the process.
void signal_group(const Child& child, int signal);

// The result of waitid.
struct ExitStatus {
  int code = 0;    // if signal is 0
  int signal = 0;  // the signal that killed it
  bool core = false;
  bool ok() const { return code == 0 && signal == 0; }
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};
ExitStatus reap(const Child& child);  // after pidfd has become readable

std::string signal_name(int signal);             // "SIGTERM"
std::string in_words(const ExitStatus& status);  // "exit code 3", "SIGSEGV (segmentation fault)"

// The number of OOM kills since boot.
long count_oom_kills(const std::string& vmstat);

// The argv of a program or script. A name without a slash that is no file here is searched in PATH.
// `.py` files are run by `python`.
std::vector<std::string> command_line(const std::string& script,
                                      const std::vector<std::string>& args,
                                      const std::string& python, const std::string& path_variable);

}  // namespace fleetx::launch
