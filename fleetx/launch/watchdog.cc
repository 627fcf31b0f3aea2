#include "fleetx/launch/watchdog.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "fleetx/base/error.h"

namespace fleetx::launch {
namespace {

constexpr char kDone = 'd';

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool has_mark(const std::string& pid, const std::string& mark) {
  const std::string environment = read_all("/proc/" + pid + "/environ");
  const size_t at = environment.find(mark);
  return at != std::string::npos && (at == 0 || environment[at - 1] == '\0');
}

void sleep_ms(long milliseconds) {
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  nanosleep(&time, nullptr);
}

// Checks the mark again after pidfd_open: a pid that was reused meanwhile is not killed.
bool kill_if_marked(const std::string& pid, const std::string& mark) {
  if (!has_mark(pid, mark)) return false;
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, std::stoi(pid), 0)));
  if (!process || !has_mark(pid, mark)) return false;
  syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  return true;
}

[[noreturn]] void run_watchdog(int pipe, const std::string& mark) {
  prctl(PR_SET_NAME, "fleetx-watchdog");
  setsid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2})
    signal(number, SIG_IGN);
  // The watchdog must not keep the launcher's output open: its reader would not see the end.
  dup2(pipe, 0);
  syscall(SYS_close_range, 1u, ~0u, 0u);
  char byte = 0;
  ssize_t got = 0;
  while ((got = read(0, &byte, 1)) < 0 && errno == EINTR) {
  }
  if (got == 0) kill_marked(mark);
  _exit(0);
}

std::vector<pid_t> children() {
  std::vector<pid_t> pids;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::istringstream list(read_all(task.path() / "children"));
    for (pid_t pid = 0; list >> pid;) pids.push_back(pid);
  }
  return pids;
}

}  // namespace

std::string random_hex(size_t bytes) {
  std::vector<unsigned char> random(bytes);
  FLEETX_CHECK(getrandom(random.data(), bytes, 0) == static_cast<ssize_t>(bytes));
  std::string text;
  for (const unsigned char byte : random) {
    text += "0123456789abcdef"[byte / 16];
    text += "0123456789abcdef"[byte % 16];
  }
  return text;
}

Watchdog::Watchdog() : mark_(str("FLEETX_LAUNCH=", random_hex(16))) {
  int ends[2];
  FLEETX_CHECK(pipe2(ends, O_CLOEXEC) == 0, "pipe: ", std::strerror(errno));
  const Fd reader(ends[0]);
  pipe_ = Fd(ends[1]);
  pid_ = fork();
  FLEETX_CHECK(pid_ >= 0, "fork: ", std::strerror(errno));
  if (pid_ == 0) {
    pipe_.reset();
    run_watchdog(reader.get(), mark_);
  }
}

Watchdog::~Watchdog() {
  if (write(pipe_.get(), &kDone, 1) != 1) pipe_.reset();
  waitpid(pid_, nullptr, 0);
}

void kill_marked(const std::string& mark) {
  // A process may fork during the scan: repeat until none is found.
  constexpr int kMaxScans = 500;
  for (int scan = 0; scan < kMaxScans; ++scan) {
    bool found = false;
    DIR* all = opendir("/proc");
    if (all == nullptr) return;
    while (const dirent* entry = readdir(all))
      if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
        found = kill_if_marked(entry->d_name, mark) || found;
    closedir(all);
    if (!found) return;
    sleep_ms(10);
  }
}

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void kill_descendants(pid_t spare) {
  // Children of a killed process become ours: each round kills one generation.
  for (bool found = true; found;) {
    found = false;
    for (const pid_t pid : children()) {
      if (pid == spare) continue;
      found = true;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
}

}  // namespace fleetx::launch
