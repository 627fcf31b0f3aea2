#include "fleetx/launch/process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fleetx/base/error.h"

namespace fleetx::launch {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Between fork and execve only async-signal-safe calls: the program has threads.
[[noreturn]] void become(const Command& command, char* const* argv, char* const* environment,
                         const cpu_set_t* cpus, int output, pid_t parent) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(125);  // the parent died before prctl
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (cpus != nullptr) sched_setaffinity(0, sizeof *cpus, cpus);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
  if (command.listen_fd >= 0) fcntl(command.listen_fd, F_SETFD, 0);
  execve(argv[0], argv, environment);
  const char* reason = strerror(errno);
  const auto say = [](const char* text) {
    if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(126);
  };
  say("fleetrun: cannot execute ");
  say(argv[0]);
  say(": ");
  say(reason);
  say("\n");
  _exit(126);
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

std::string find_program(const std::string& name, const std::string& path_variable) {
  if (is_file(name)) return name.find('/') == std::string::npos ? "./" + name : name;
  if (name.find('/') != std::string::npos) return "";
  std::istringstream folders(path_variable);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string path = folder + "/" + name; is_file(path)) return path;
  return "";
}

}  // namespace

Child spawn(const Command& command, int output) {
  const std::vector<char*> argv = pointers(command.argv);
  const std::vector<char*> environment = pointers(command.environment);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : command.cpus) CPU_SET(cpu, &cpus);
  const pid_t parent = getpid();
  Child child;
  child.pid = fork();
  if (child.pid == 0)
    become(command, argv.data(), environment.data(), command.cpus.empty() ? nullptr : &cpus, output,
           parent);
  if (child.pid < 0)
    fail(Error::Kind::kUnsupported,
         str("cannot start ", command.argv[0], ": ", std::strerror(errno)));
  child.pidfd = Fd(static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0)));
  if (!child.pidfd) {
    const int reason = errno;
    kill(child.pid, SIGKILL);
    waitpid(child.pid, nullptr, 0);
    fail(Error::Kind::kUnsupported,
         str("cannot watch a process: pidfd_open: ", std::strerror(reason)));
  }
  return child;
}

void signal_group(const Child& child, int signal) {
  FLEETX_CHECK(child.pid > 1, "no process was started");  // -1 would be everybody
  // The child may not have called setsid yet.
  if (kill(-child.pid, signal) != 0) kill(child.pid, signal);
}

ExitStatus reap(const Child& child) {
  siginfo_t info{};
  ExitStatus status;
  while (waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED) != 0 && errno == EINTR) {
  }
  if (info.si_code == CLD_EXITED)
    status.code = info.si_status;
  else
    status.signal = info.si_status;
  status.core = info.si_code == CLD_DUMPED;
  return status;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? str("SIG", name) : str("signal ", signal);
}

std::string in_words(const ExitStatus& status) {
  if (status.signal == 0) return str("exit code ", status.code);
  std::string text = sigdescr_np(status.signal) == nullptr ? "" : sigdescr_np(status.signal);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(text[0]));
  return str("killed by ", signal_name(status.signal), " (", text,
             status.core ? ", core dumped" : "", ")");
}

long count_oom_kills(const std::string& vmstat) {
  std::ifstream file(vmstat);
  std::string name;
  for (long value = 0; file >> name >> value;)
    if (name == "oom_kill") return value;
  return 0;
}

std::vector<std::string> command_line(const std::string& script,
                                      const std::vector<std::string>& args,
                                      const std::string& python, const std::string& path_variable) {
  std::vector<std::string> argv;
  const bool is_python = script.ends_with(".py");
  if (is_python) {
    check_arg(is_file(script), "there is no script '", script, "' (in ",
              std::filesystem::current_path().string(), "); give the path of the training script");
    const std::string interpreter = find_program(python, path_variable);
    check_arg(!interpreter.empty() && access(interpreter.c_str(), X_OK) == 0, "--python: '", python,
              "' is no program that can be run; give the path of a Python interpreter");
    argv = {interpreter, "-u", script};
  } else {
    check_arg(!std::filesystem::is_directory(script), "'", script,
              "' is a folder; give a program or a .py script");
    const std::string program = find_program(script, path_variable);
    check_arg(!program.empty(), "there is no program '", script,
              "' here or on PATH; give the path of a program or of a .py script");
    check_arg(access(program.c_str(), X_OK) == 0, "'", program,
              "' may not be executed; run `chmod +x ", program, "`, or give a .py script");
    argv = {program};
  }
  argv.insert(argv.end(), args.begin(), args.end());
  return argv;
}

}  // namespace fleetx::launch
