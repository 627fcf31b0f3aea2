// A process of a job that behaves as its arguments say, to try the launcher:
//   actor WHO HOW WHEN      WHO acts (worker0, server0, all), the others work until they are told
//                           to end; WHEN: start, or during (after all have met)
// HOW: exit:N, signal:N, hang (ignores SIGTERM), daemon (leaves a process behind and ends), done,
// meet (meets all workers in the store and ends)
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "fleetx/base/job_env.h"
#include "fleetx/comm/store.h"

namespace {

using fleetx::JobEnv;
using fleetx::JobRole;

void say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

[[noreturn]] void sleep_for_ever() {
  for (;;) pause();
}

// Forks twice and leaves the session: no child of the launcher any more, nor of its children.
void leave_daemon() {
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  signal(SIGTERM, SIG_IGN);
  say("daemon " + std::to_string(getpid()));
  sleep_for_ever();
}

[[noreturn]] void act(const std::string& how) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const size_t colon = how.find(':');
  const int number = colon == std::string::npos ? 0 : std::atoi(how.c_str() + colon + 1);
  say("acts: " + how);
  if (how.starts_with("exit:")) std::_Exit(number);
  if (how.starts_with("signal:")) {
    signal(number, SIG_DFL);
    raise(number);
  }
  if (how == "daemon") leave_daemon();
  if (how == "hang") sleep_for_ever();
  std::_Exit(0);
}

void meet(const JobEnv& job) {
  fleetx::comm::StoreClient store(fleetx::comm::store_options_from_env(job.rank));
  store.barrier("meet", job.rank, job.world);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 99;
  const JobEnv job = JobEnv::from_environment();
  const std::string who = argv[1], how = argv[2], when = argv[3];
  const bool worker = job.role == JobRole::kWorker;
  const std::string me = (worker ? "worker" : "server") + std::to_string(job.rank);
  const bool acts = who == me || who == "all";
  say(me + " pid " + std::to_string(getpid()));
  if (how == "hang") signal(SIGTERM, SIG_IGN);
  if (acts && when == "start") act(how);
  if (worker) meet(job);
  if (worker) say("met");
  if (acts && how != "meet") act(how);
  if (how == "meet" || (how == "done" && worker)) return 0;
  sleep_for_ever();
}
