#include "fleetx/data/child_process.h"

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

// As a program expects to be started, whatever this process has done to its signals: Python ignores
// SIGPIPE, without which `... | head` does not end.
class SpawnSettings {
 public:
  explicit SpawnSettings(const ChildOptions& o) {
    posix_spawn_file_actions_init(&files_);
    if (o.input >= 0)
      posix_spawn_file_actions_adddup2(&files_, o.input, STDIN_FILENO);
    else
      posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, o.output, STDOUT_FILENO);
    if (o.errors >= 0) posix_spawn_file_actions_adddup2(&files_, o.errors, STDERR_FILENO);
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

  pid_t run(const ChildOptions& o) const {
    std::vector<std::string> variables;
    for (const auto& [name, value] : o.environment) variables.push_back(str(name, "=", value));
    const std::vector<char*> argv = ends_with_null(o.argv), envp = ends_with_null(variables);
    pid_t pid = -1;
    const int error = posix_spawn(&pid, argv[0], &files_, &attributes_, argv.data(),
                                  variables.empty() ? environ : envp.data());
    check_arg(error == 0, o.name, " cannot be started: ", std::strerror(error));
    return pid;
  }

 private:
  static std::vector<char*> ends_with_null(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
  }

  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

}  // namespace

ChildProcess::ChildProcess(const ChildOptions& options)
    : pid_(SpawnSettings(options).run(options)) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  kill(-pid_, SIGKILL);
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
}

bool ChildProcess::ended() {
  if (pid_ < 0) return true;
  const pid_t found = waitpid(pid_, &status_, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return false;
  pid_ = -1;
  return true;
}

bool ChildProcess::succeeded() const { return code() == 0; }

int ChildProcess::code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }

std::string ChildProcess::status() const {
  return WIFSIGNALED(status_) ? str("signal ", WTERMSIG(status_)) : str(WEXITSTATUS(status_));
}

}  // namespace fleetx::data
