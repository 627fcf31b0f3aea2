#include "fleetx/data/shell_command.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fleetx/base/error.h"

namespace fleetx::data {
namespace {

// As a shell expects to be started, whatever this process has done to its signals: Python ignores
// SIGPIPE, without which `... | head` does not end.
class SpawnSettings {
 public:
  SpawnSettings(int input, int output) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_adddup2(&files_, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files_, output, STDOUT_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigaddset(&signals, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  pid_t run(const std::string& command) const {
    const char* const argv[] = {"sh", "-c", command.c_str(), nullptr};
    pid_t pid = -1;
    const int error = posix_spawn(&pid, "/bin/sh", &files_, &attributes_,
                                  const_cast<char* const*>(argv), environ);
    check_arg(error == 0, "pipe_command '", command, "' cannot be started: ", std::strerror(error));
    return pid;
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

}  // namespace

ShellCommand::ShellCommand(std::string text, const Fd& input) : text_(std::move(text)) {
  int ends[2];
  check_arg(pipe2(ends, O_CLOEXEC) == 0, "pipe_command '", text_,
            "' gets no pipe: ", std::strerror(errno));
  output_ = Fd(ends[0]);
  const Fd written(ends[1]);
  pid_ = SpawnSettings(input.get(), written.get()).run(text_);
}

ShellCommand::~ShellCommand() {
  if (pid_ < 0) return;
  kill(-pid_, SIGKILL);
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
}

bool ShellCommand::ended() {
  if (pid_ < 0) return true;
  const pid_t found = waitpid(pid_, &status_, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return false;
  pid_ = -1;
  return true;
}

bool ShellCommand::succeeded() const { return WIFEXITED(status_) && WEXITSTATUS(status_) == 0; }

std::string ShellCommand::status() const {
  return WIFSIGNALED(status_) ? str("signal ", WTERMSIG(status_)) : str(WEXITSTATUS(status_));
}

}  // namespace fleetx::data
