// Who dies or is stopped, and in which phase: whoever it is, somebody names it in time, nobody
// hangs and nothing is left. Prints the matrix as a table. Without fleetrun, whose policy comes on
// top (tests/launch/fault_policy_test.cc, tests/python/paddle/test_server_faults.py).
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <thread>

#include "tests/ps/process.h"
#include "tests/support/temp_dir.h"

namespace fleetx::ps {
namespace {

// Seconds from the fault to its name in a log, and to the end of all that cannot go on.
constexpr double kNamed = 5, kEnded = 15;
constexpr size_t kAtOnce = 20;  // rows; they mostly wait

struct Row {
  std::string phase, victim, mode;  // victim: worker or server
  int signal = 0, replicas = 1;
  // The result.
  std::string named{};  // how
  double named_after = -1, ended_after = -1;
  std::string survivor{};  // goes on, stops
  bool clean = false;
};

// Of two servers and two workers the second dies, but for barriers, which the first server keeps.
int victim_of(const Row& row) { return row.victim == "server" && row.phase == "barrier" ? 0 : 1; }

// What a log says about the trouble of the victim.
std::string words_for(const Row& row, const std::string& log) {
  const std::string who =
      (row.victim == "server" ? "parameter server " : "worker ") + std::to_string(victim_of(row));
  constexpr const char* kWords[] = {
      "takes its place",         "is lost",      "has not come", "heard nothing", "waits for",
      "cannot be reached",       "is not there", "has closed",   "reset",         "disconnected",
      "goes on without its copy"};
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    for (const char* words : kWords)
      if (line.find(who) != std::string::npos && line.find(words) != std::string::npos)
        return words;
  return "";
}

class Job {
 public:
  explicit Job(Row& row) : row_(row), victim_(victim_of(row)) {}

  void run() {
    start();
    const double fault = strike();
    watch(fault);
    end(fault);
  }

 private:
  bool server_dies() const { return row_.victim == "server"; }
  // A worker learns of the copy from the server.
  bool goes_on() const {
    return server_dies() ? row_.replicas == 2 && row_.phase != "start" : row_.mode == "async";
  }
  std::string log(const std::string& who) const { return folder_ / who; }

  void start_server(int s) {
    const auto at = static_cast<size_t>(s);
    servers_[at] = std::make_unique<Process>(
        std::vector<std::string>{"server", std::to_string(s), endpoints_[at], row_.mode, "2", "2",
                                 "-",
                                 row_.replicas == 2 ? "copied_by:" + endpoints_[1 - at] : "fresh"},
        log("server" + std::to_string(s)));
  }

  void start_worker(int w, const std::string& phase, const std::string& how) {
    workers_[w] = std::make_unique<Process>(
        std::vector<std::string>{"worker", std::to_string(w), endpoints_[0] + "," + endpoints_[1],
                                 row_.mode, "2", phase, how, folder_ / "saved"},
        log("worker" + std::to_string(w)));
  }

  void start() {
    for (int s = 0; s < 2; ++s) start_server(s);
    if (server_dies() && row_.phase == "start") {
      EXPECT_TRUE(servers_[victim_]->says("begins"));
      servers_[victim_]->signal(row_.signal);
      struck_ = now();
    }
    // In sync mode workers push and pull in turns, or they wait for each other.
    const bool steps = row_.phase == "start" ||
                       (row_.mode == "sync" && (row_.phase == "pull" || row_.phase == "push"));
    const std::string both = row_.phase == "barrier" ? "barrier" : "steps";
    start_worker(0, !server_dies() ? both : steps ? "steps" : row_.phase, "loop");
    if (server_dies())
      start_worker(1, both, "loop");
    else
      start_worker(1, row_.phase, std::to_string(row_.signal));
  }

  // When it happens.
  double strike() {
    if (struck_ > 0) return struck_;
    if (!server_dies()) {
      EXPECT_TRUE(workers_[1]->says(row_.phase == "start" ? "begins" : "in ")) << all_logs();
      return now();
    }
    for (const auto& worker : workers_) EXPECT_TRUE(worker->says("in ")) << all_logs();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    servers_[victim_]->signal(row_.signal);
    return now();
  }

  void watch(double fault) {
    while (row_.named.empty() && now() < fault + kEnded) {
      std::vector<Process*> others{workers_[0].get()};
      if (server_dies())
        others.insert(others.end(), {workers_[1].get(), servers_[1 - victim_].get()});
      else
        others.insert(others.end(), {servers_[0].get(), servers_[1].get()});
      for (const Process* p : others)
        if (row_.named.empty()) row_.named = words_for(row_, p->output());
      row_.named_after = now() - fault;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  void end(double fault) {
    // Async jobs do without a worker, and a server with a copy is replaced: the others end when
    // they are asked to.
    if (goes_on()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      for (auto& worker : workers_) {
        if (!server_dies() && worker != workers_[0]) continue;
        EXPECT_FALSE(worker->ended()) << all_logs();
        worker->finish();
      }
    }
    const int code = workers_[0]->wait();
    row_.ended_after = now() - fault;
    row_.survivor = code == 0 ? "goes on" : code == 3 ? "stops" : "HANGS";
    if (server_dies()) {
      EXPECT_EQ(workers_[1]->wait(), goes_on() ? 0 : 3) << all_logs();
    }
    for (auto* group : {&servers_, &workers_})
      for (auto& process : *group) {
        process->signal(SIGKILL);
        process->wait();
      }
    row_.clean = std::ranges::all_of(endpoints_, can_bind);
    EXPECT_FALSE(row_.named.empty()) << all_logs();
    EXPECT_LT(row_.named_after, kNamed) << all_logs();
    EXPECT_LT(row_.ended_after, kEnded) << all_logs();
    EXPECT_EQ(row_.survivor, goes_on() ? "goes on" : "stops") << all_logs();
    EXPECT_TRUE(row_.clean);
  }

  std::string all_logs() const {
    std::string all = row_.phase + " " + row_.victim + " " + row_.mode + "\n";
    for (const auto* group : {&servers_, &workers_})
      for (const auto& process : *group)
        if (process) all += "---\n" + process->output();
    return all;
  }

  Row& row_;
  const int victim_;
  testing::TempDir folder_;
  std::vector<std::string> endpoints_ = free_endpoints(2);
  std::unique_ptr<Process> servers_[2], workers_[2];
  double struck_ = 0;
};

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (const char* phase : {"start", "pull", "push", "barrier", "save", "load", "shrink"})
    for (const char* victim : {"worker", "server"})
      for (const int number : {SIGKILL, SIGSTOP})
        for (const char* mode : {"sync", "async"})
          for (const int replicas : {1, 2}) rows.push_back({phase, victim, mode, number, replicas});
  return rows;
}

TEST(FaultMatrix, WhoeverDiesInAnyPhaseIsNamedAndNobodyHangs) {
  std::vector<Row> rows = all_rows();
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kAtOnce; ++t)
    threads.emplace_back([&] {
      for (size_t i = next++; i < rows.size(); i = next++) Job(rows[i]).run();
    });
  for (std::thread& thread : threads) thread.join();
  std::printf("%-8s %-7s %-8s %-6s %-8s %-18s %8s %-8s %7s %5s\n", "phase", "victim", "signal",
              "mode", "replicas", "named as", "after", "others", "by", "clean");
  for (const Row& r : rows)
    std::printf("%-8s %-7s SIG%-5s %-6s %-8d %-18s %6.1f s %-8s %5.1f s %5s\n", r.phase.c_str(),
                r.victim.c_str(), sigabbrev_np(r.signal), r.mode.c_str(), r.replicas,
                r.named.c_str(), r.named_after, r.survivor.c_str(), r.ended_after,
                r.clean ? "yes" : "NO");
}

}  // namespace
}  // namespace fleetx::ps
