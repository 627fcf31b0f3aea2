#include "fleetx/data/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fleetx/base/error.h"

namespace fleetx::data {
namespace {

std::vector<char*> ends_with_null(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// What a program gets.
struct Words {
  explicit Words(const ChildOptions& o) : argv(ends_with_null(o.argv)) {
    for (const auto& [name, value] : o.environment) variables.push_back(str(name, "=", value));
    envp = ends_with_null(variables);
  }
  char* const* environment() const { return variables.empty() ? environ : envp.data(); }

  std::vector<char*> argv, envp;
  std::vector<std::string> variables;
};

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
    const Words words(o);
    pid_t pid = -1;
    const int error = posix_spawn(&pid, words.argv[0], &files_, &attributes_, words.argv.data(),
                                  words.environment());
    check_arg(error == 0, o.name, " cannot be started: ", std::strerror(error));
    return pid;
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

// The same for a child of fork: only async-signal-safe calls, as the program has threads.
[[noreturn]] void become(const ChildOptions& o, const Words& words, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(125);  // the parent died before prctl
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int input = o.input >= 0 ? o.input : open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(input, STDIN_FILENO);
  dup2(o.output, STDOUT_FILENO);
  if (o.errors >= 0) dup2(o.errors, STDERR_FILENO);
  syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
  execve(words.argv[0], words.argv.data(), words.environment());
  const char* reason = strerrordesc_np(errno);
  for (const char* text : {"cannot be started: ", reason == nullptr ? "?" : reason, "\n"})
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) break;
  _exit(126);
}

pid_t start(const ChildOptions& o) {
  if (!o.ends_with_us) return SpawnSettings(o).run(o);
  const Words words(o);
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) become(o, words, parent);
  check_arg(pid > 0, o.name, " cannot be started: ", std::strerror(errno));
  setpgid(pid, pid);  // whoever comes first
  return pid;
}

}  // namespace

ChildProcess::ChildProcess(const ChildOptions& options) : pid_(start(options)) {}

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
