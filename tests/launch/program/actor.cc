// A process of a job that behaves as its arguments say, to try the launcher:
//   actor WHO HOW WHEN    WHO acts (worker0, server0, all), the others work until they are told to
//                         end; WHEN: start, or during (after all have met)
//   actor WHO HOW follow  the same as during; but WHO stops its launcher first (SIGSTOP), and the
//                         others end by exit code 3 as soon as they hear that one has failed
//   actor WHO HOW once|always|copied MODE
//                         server 0 tells fleetrun the mode; WHO acts after all have met, and,
//                         always, also when it is started again. The others end when there is a
//                         file `done`, which WHO makes at its last start
// HOW: exit:N, signal:N, late (dies by SIGKILL when it is asked to end), hang (ignores SIGTERM),
// daemon (leaves a process behind and ends), daemon-and-work (does not end), done (workers end),
// meet (all meet in the store and end), listen (the same, after it has listened on the socket it
// inherited), describe (says where it is)
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "fleetx/base/error.h"
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
  if (how.starts_with("daemon")) leave_daemon();
  if (how == "hang" || how == "late" || how == "daemon-and-work") sleep_for_ever();
  std::_Exit(0);
}

// All processes meet: the job does not end before the last server has said its first line.
void meet(const JobEnv& job) {
  const bool worker = job.role == JobRole::kWorker;
  fleetx::comm::StoreClient store(fleetx::comm::store_options_from_env(worker ? job.rank : -1));
  const auto server = [](size_t rank) { return "server" + std::to_string(rank); };
  if (!worker) store.set(server(static_cast<size_t>(job.rank)), "");
  if (worker) store.barrier("meet", job.rank, job.world);
  if (worker && job.rank == 0) {
    for (size_t i = 0; i < job.server_endpoints.size(); ++i) store.wait(server(i));
    store.set("met", "");
  }
  store.wait("met");
}

void describe(const JobEnv& job) {
  const char* const starters[] = {"nobody", "fleetrun", "endpoints", "mpi", "slurm"};
  std::ostringstream text;
  text << starters[static_cast<int>(job.started_by)] << " rank " << job.rank << " of " << job.world
       << ", local " << job.local_rank << " of " << job.local_world << ", node " << job.node
       << " of " << job.nodes << ", job " << job.job_id;
  say(text.str());
}

// 0 where the inherited socket is the process's own endpoint and can listen.
int listen_on_inherited(const JobEnv& job) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  if (!job.listen_fd || listen(*job.listen_fd, 8) != 0) return 1;
  getsockname(*job.listen_fd, reinterpret_cast<sockaddr*>(&address), &length);
  const std::string port = ":" + std::to_string(ntohs(address.sin_port));
  return job.endpoint.ends_with(port) ? 0 : 2;
}

// A server writes something where its snapshot is to be.
void make_file(const std::string& path) { std::ofstream(path) << "x" << std::flush; }

// When it was started again.
[[noreturn]] void come_back(const JobEnv& job, const std::string& how, const std::string& when) {
  say("back " + std::to_string(job.rejoin));
  const bool last = when == "once" || job.rejoin == 3;
  if (last) make_file("done");
  if (when == "always") act(how);
  if (job.role != JobRole::kWorker) sleep_for_ever();
  std::_Exit(0);
}

void tell_mode(const JobEnv& job, const std::string& mode) {
  if (job.role != JobRole::kServer || job.rank != 0) return;
  fleetx::comm::StoreClient store(fleetx::comm::store_options_from_env(-1));
  store.set(fleetx::job_var::kModeKey, mode);
}

// `done` may name a process that is about to die: fleetrun is to see that first.
[[noreturn]] void work_until_done(const JobEnv& job) {
  if (job.role != JobRole::kWorker) sleep_for_ever();
  while (access("done", F_OK) != 0) usleep(2000);
  pid_t dying = 0;
  std::ifstream("done") >> dying;
  while (dying > 0 && kill(dying, 0) == 0) usleep(2000);
  std::_Exit(0);
}

// `done` appears with its contents.
void name_as_dying() {
  std::ofstream("dying") << getpid() << std::flush;
  std::rename("dying", "done");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 99;
  const JobEnv job = JobEnv::from_environment();
  const std::string who = argv[1], how = argv[2], when = argv[3];
  const bool worker = job.role == JobRole::kWorker;
  const std::string me = (worker ? "worker" : "server") + std::to_string(job.rank);
  const bool acts = who == me || who == "all";
  if (how == "describe") {
    describe(job);
    return 0;
  }
  say(me + " pid " + std::to_string(getpid()));
  if (how == "hang") signal(SIGTERM, SIG_IGN);
  if (how == "late" && acts) signal(SIGTERM, [](int) { kill(getpid(), SIGKILL); });
  if (job.rejoin > 0) come_back(job, how, when);
  if (argc == 5) tell_mode(job, argv[4]);
  if (acts && when == "start") act(how);
  if (how == "listen" && listen_on_inherited(job) != 0) return 98;
  try {
    meet(job);
  } catch (const fleetx::Error&) {  // one that acts has died before all knew that they had met
    if (!acts && when == "during") sleep_for_ever();
    throw;
  }
  say("met");
  if (argc == 5) {
    if (!acts) work_until_done(job);
    if (!job.snapshot.empty()) make_file(job.snapshot);
    if (when == "copied" && how == "late") make_file("done");
    if (when == "copied" && how != "late") name_as_dying();  // nobody starts it again
    act(how);
  }
  if (when == "follow") {
    fleetx::comm::StoreClient store(fleetx::comm::store_options_from_env(job.rank));
    store.barrier("follow", job.rank, job.world);
    if (acts) {
      kill(getppid(), SIGSTOP);
      act(how);
    }
    try {
      store.wait("what nobody sets");
    } catch (const fleetx::Error& e) {
      say(e.what());
      std::_Exit(3);
    }
  }
  const bool meets = how == "meet" || how == "listen";
  if (acts && !meets) act(how);
  if (meets || (how == "done" && worker)) return 0;
  sleep_for_ever();
}
