#include "tests/launch/fleetrun.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "fleetx/base/job_env.h"

namespace fleetx::testing {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

void redirect(const std::string& path, int to) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(fd, to);
  close(fd);
}

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Fleetrun::Fleetrun(const std::vector<std::string>& args,
                   const std::map<std::string, std::string>& env,
                   const std::vector<std::string>& before)
    : started_(now()) {
  std::vector<std::string> argv = before;
  argv.push_back(FLEETRUN);
  argv.insert(argv.end(), args.begin(), args.end());
  std::map<std::string, std::string> all = whole_environment();
  all["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin";
  for (const auto& [name, value] : env) all[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : all) entries.push_back(name + "=" + value);
  std::vector<char*> argv_pointers = pointers(argv), entry_pointers = pointers(entries);
  pid_ = fork();
  if (pid_ != 0) return;
  if (chdir(folder_.path().c_str()) != 0) _exit(98);
  redirect("out", 1);
  redirect("err", 2);
  execvpe(argv_pointers[0], argv_pointers.data(), entry_pointers.data());
  _exit(97);
}

Fleetrun::~Fleetrun() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Fleetrun::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);  // -1 would be everybody
}

std::string Fleetrun::read(const std::string& name) const {
  std::ifstream file(folder_ / name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool Fleetrun::says(const std::string& name, const std::string& text) const {
  for (const double end = now() + 10; now() < end;) {
    if (read(name).find(text) != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

FleetrunResult Fleetrun::wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  FleetrunResult result;
  result.seconds = now() - started_;
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read("out");
  result.err = read("err");
  return result;
}

FleetrunResult run_fleetrun(const std::vector<std::string>& args,
                            const std::map<std::string, std::string>& env) {
  return Fleetrun(args, env).wait();
}

std::vector<pid_t> processes_with(const std::string& entry) {
  std::vector<pid_t> pids;
  std::error_code ignored;
  for (const auto& process : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = process.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(process.path() / "environ", std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (text.str().find(entry) != std::string::npos) pids.push_back(std::stoi(name));
  }
  return pids;
}

std::string output_of(const std::string& command, int* code) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  while (const size_t got = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, got);
  const int status = pclose(pipe);
  if (code)
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  else
    EXPECT_EQ(status, 0) << text;
  return text;
}

}  // namespace fleetx::testing
