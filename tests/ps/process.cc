#include "tests/ps/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "fleetx/base/error.h"
#include "fleetx/comm/socket.h"

namespace fleetx::ps {
namespace {

constexpr double kMostSeconds = 20;

void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Process::Process(const std::vector<std::string>& args, std::string output)
    : output_(std::move(output)) {
  std::vector<std::string> all{FLEETX_PS_ACTOR};
  all.insert(all.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& arg : all) argv.push_back(arg.data());
  argv.push_back(nullptr);
  int ends[2];
  FLEETX_CHECK(pipe2(ends, O_CLOEXEC) == 0);
  const int log = open(output_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  // The program has threads: only calls that are safe there until exec.
  pid_ = fork();
  if (pid_ == 0) {
    dup2(ends[0], STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(97);
  }
  FLEETX_CHECK(pid_ > 0, "cannot fork");
  close(log);
  close(ends[0]);
  input_ = ends[1];
}

Process::~Process() {
  finish();
  if (ended()) return;
  kill(pid_, SIGKILL);
  wait();
}

void Process::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);  // -1 would be everybody
}

void Process::finish() {
  if (input_ >= 0) close(input_);
  input_ = -1;
}

bool Process::ended() {
  int status = 0;
  if (pid_ < 0) return true;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  pid_ = -1;
  return true;
}

int Process::wait() {
  for (const double end = now() + kMostSeconds; now() < end; rest())
    if (ended()) return code_;
  kill(pid_, SIGKILL);
  while (!ended()) rest();
  return 98;
}

std::string Process::output() const {
  std::ifstream file(output_);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool Process::says(const std::string& text) const {
  for (const double end = now() + kMostSeconds; now() < end; rest())
    if (output().find(text) != std::string::npos) return true;
  return false;
}

std::vector<std::string> free_endpoints(int count) {
  static std::atomic<int> calls{0};
  const int pid = getpid();
  const std::string host = str("127.", 1 + pid / 256 % 254, ".", pid % 256, ".", 1 + calls++ % 254);
  std::vector<Fd> held;
  std::vector<std::string> endpoints;
  for (int i = 0; i < count; ++i) {
    held.push_back(comm::listen_on({host, 0}));
    endpoints.push_back(comm::to_string(comm::local_endpoint(held.back().get())));
  }
  return endpoints;
}

bool can_bind(const std::string& endpoint) {
  try {
    comm::listen_on(comm::parse_endpoint(endpoint));
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace fleetx::ps
