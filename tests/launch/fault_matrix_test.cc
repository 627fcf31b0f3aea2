// Who dies, how and when: whatever happens, it is named in time, fleetrun's exit code says it, and
// nothing is left behind. Prints the matrix as a table.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>
#include <thread>

#include "tests/launch/fleetrun.h"

namespace fleetx::testing {
namespace {

struct Fault {
  const char* who;          // worker1, server0, fleetrun
  const char* how;          // as the actor takes it; for fleetrun, what the processes do
  int signal = 0;           // sent to fleetrun
  const char* when;         // start, during
  int code;                 // of fleetrun
  const char* named;        // in fleetrun's report
  double most_seconds = 2;  // from the fault to the end
};

const Fault kFaults[] = {
    {"worker1", "exit:3", 0, "start", 3, "worker 1 failed after"},
    {"worker1", "exit:3", 0, "during", 3, "worker 1 failed after"},
    {"worker1", "signal:9", 0, "start", 137, "killed by SIGKILL (killed)"},
    {"worker1", "signal:9", 0, "during", 137, "killed by SIGKILL (killed)"},
    {"worker1", "signal:11", 0, "start", 139, "killed by SIGSEGV (segmentation fault)"},
    {"worker1", "signal:11", 0, "during", 139, "killed by SIGSEGV (segmentation fault)"},
    {"worker1", "signal:15", 0, "start", 143, "killed by SIGTERM (terminated)"},
    {"worker1", "signal:15", 0, "during", 143, "killed by SIGTERM (terminated)"},
    {"worker1", "hang", SIGTERM, "start", 143, "it did not end when asked to"},
    {"worker1", "hang", SIGTERM, "during", 143, "it did not end when asked to"},
    {"worker1", "daemon", SIGTERM, "during", 143, "worker 1 ended after"},
    {"server0", "exit:3", 0, "start", 3, "server 0 failed after"},
    {"server0", "exit:3", 0, "during", 3, "server 0 failed after"},
    {"server0", "signal:9", 0, "start", 137, "killed by SIGKILL (killed)"},
    {"server0", "signal:9", 0, "during", 137, "killed by SIGKILL (killed)"},
    {"server0", "signal:11", 0, "start", 139, "killed by SIGSEGV (segmentation fault)"},
    {"server0", "signal:11", 0, "during", 139, "killed by SIGSEGV (segmentation fault)"},
    {"server0", "signal:15", 0, "start", 143, "killed by SIGTERM (terminated)"},
    {"server0", "signal:15", 0, "during", 143, "killed by SIGTERM (terminated)"},
    {"server0", "hang", SIGTERM, "during", 143, "it did not end when asked to"},
    {"fleetrun", "work", SIGKILL, "start", 137, ""},
    {"fleetrun", "work", SIGKILL, "during", 137, ""},
    {"fleetrun", "hang", SIGKILL, "during", 137, ""},
    {"fleetrun", "daemons", SIGKILL, "during", 137, ""},
    {"fleetrun", "work", SIGSEGV, "during", 139, ""},
    {"fleetrun", "work", SIGINT, "start", 130, "stopped by SIGINT"},
    {"fleetrun", "work", SIGINT, "during", 130, "stopped by SIGINT"},
    {"fleetrun", "work", SIGTERM, "start", 143, "stopped by SIGTERM"},
    {"fleetrun", "work", SIGTERM, "during", 143, "stopped by SIGTERM"},
    {"fleetrun", "hang", SIGTERM, "during", 143, "it did not end when asked to"},
    {"fleetrun", "work", SIGHUP, "during", 129, "stopped by SIGHUP"},
};

// The ports of the job, which must be free again.
std::vector<int> ports_in(const std::string& endpoints_log) {
  std::vector<int> ports;
  std::istringstream lines(endpoints_log);
  for (std::string line; std::getline(lines, line);)
    if (const size_t colon = line.rfind(':'); colon + 1 < line.size())
      ports.push_back(std::stoi(line.substr(colon + 1)));
  return ports;
}

bool can_bind(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool ok = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return ok;
}

std::set<std::string> shared_memory_of_jobs() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().find("fleetx") != std::string::npos)
      names.insert(entry.path().filename());
  return names;
}

struct Row {
  double seconds = 0;
  bool code_ok = false, named = false, clean = false;
};

bool nothing_left(const Fleetrun& run, const std::string& mark) {
  // After kill -9 the watchdog needs a moment.
  for (const double end = now() + 1; now() < end;) {
    const std::vector<int> ports = ports_in(run.read("log/endpoints.log"));
    if (processes_with(mark).empty() && std::ranges::all_of(ports, can_bind)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

Row try_fault(const Fault& fault, const std::string& mark) {
  const std::string who = fault.who, how = fault.how, when = fault.when;
  const bool launcher = who == "fleetrun";
  std::vector<std::string> args{"--worker_num=2", "--server_num=1", "--grace=0.3",
                                FLEETX_LAUNCH_ACTOR};
  const bool daemons = how == "daemons";
  if (launcher)
    args.insert(args.end(),
                {daemons ? "all" : "none", daemons ? "daemon-and-work" : how, "during"});
  else
    args.insert(args.end(), {who, how, when});
  const size_t equal = mark.find('=');
  Fleetrun run(args, {{mark.substr(0, equal), mark.substr(equal + 1)}});
  const double started = now();
  double fault_at = started;
  if (fault.signal != 0) {
    const bool during = when == "during";
    EXPECT_TRUE(run.says("log/workerlog.1", during ? "met" : "worker1 pid"));
    const bool leaves = how.starts_with("daemon");
    EXPECT_TRUE(!leaves || run.says("log/workerlog.1", "daemon "));
    fault_at = now();
    run.signal(fault.signal);
  }
  const FleetrunResult r = run.wait();
  Row row;
  row.seconds = now() - fault_at;
  row.code_ok = r.code == fault.code;
  row.named = r.err.find(fault.named) != std::string::npos;
  row.clean = nothing_left(run, mark);
  EXPECT_EQ(r.code, fault.code) << r.err;
  EXPECT_TRUE(row.named) << fault.named << "\n" << r.err;
  EXPECT_TRUE(row.clean);
  EXPECT_LT(row.seconds, fault.most_seconds);
  return row;
}

std::string in_words(const Fault& fault) {
  const std::string how = fault.how;
  if (fault.signal == 0) return how;
  const std::string name = sigabbrev_np(fault.signal);
  if (std::string(fault.who) == "fleetrun" && how == "work") return "SIG" + name;
  return how + ", SIG" + name + " to fleetrun";
}

TEST(FaultMatrix, FailuresAreReportedInTimeAndLeaveNoProcesses) {
  const std::set<std::string> before = shared_memory_of_jobs();
  std::ostringstream table;
  char line[160];
  std::snprintf(line, sizeof line, "%-9s %-30s %-7s %6s %5s %6s %6s\n", "who", "how", "when",
                "code", "ok", "named", "clean");
  table << line;
  int number = 0;
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(std::string(fault.who) + " " + in_words(fault) + " " + fault.when);
    const std::string mark =
        "FLEETX_TEST_ROW=" + std::to_string(getpid()) + "." + std::to_string(number++);
    const Row row = try_fault(fault, mark);
    std::snprintf(line, sizeof line, "%-9s %-30s %-7s %6d %5s %6s %6s  %.2f s\n", fault.who,
                  in_words(fault).c_str(), fault.when, fault.code, row.code_ok ? "yes" : "NO",
                  *fault.named == 0 ? "-"
                  : row.named       ? "yes"
                                    : "NO",
                  row.clean ? "yes" : "NO", row.seconds);
    table << line;
  }
  std::printf("%s", table.str().c_str());
  EXPECT_EQ(shared_memory_of_jobs(), before);
}

}  // namespace
}  // namespace fleetx::testing
