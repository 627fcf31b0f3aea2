#include "tests/comm/ranks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <thread>

#include "fleetx/base/error.h"
#include "fleetx/base/job_env.h"

namespace fleetx::testing {
namespace {

using namespace comm;

// Only a program that is started with this filter, as mpirun starts it, has the tests MpiRank.Run:
// elsewhere they would be listed as tests that did not run.
constexpr std::string_view kMpiFilter = "*MpiRank.Run/";

// Runs the function and says whether it went well, for a process of its own.
int run_here(const std::string& name, const std::string& who,
             const std::function<std::unique_ptr<Communicator>()>& make) {
  try {
    const auto communicator = make();
    rank_functions().at(name)(*communicator);
  } catch (const std::exception& e) {
    ADD_FAILURE() << who << ": " << e.what();
  }
  std::cout << std::flush;
  std::cerr << std::flush;
  return ::testing::Test::HasFailure() ? 1 : 0;
}

CommOptions options_for(const std::string& backend, int rank, const std::vector<int>& hosts) {
  CommOptions o{.rank = rank, .size = kRanks, .backend = backend};
  if (!hosts.empty()) {
    o.size = static_cast<int>(hosts.size());
    o.host_id = str("host ", hosts[static_cast<size_t>(rank)]);
  } else if (backend.back() == '*') {
    o.backend.pop_back();
    o.host_id = str("host ", rank % 2);
  } else if (backend == "hierarchical") {
    o.host_id = str("host ", rank / 2);
  }
  return o;
}

pid_t start_rank(const std::string& backend, const std::string& name, int rank,
                 const StoreOptions& store, const RunOptions& run) {
  const pid_t parent = getpid(), child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(3);
  const int code = run_here(name, str("rank ", rank), [&] {
    CommOptions o = options_for(backend, rank, run.hosts);
    StoreOptions mine = store;
    mine.rank = rank;
    mine.host = str("h", rank);
    o.store = std::make_shared<StoreClient>(mine);
    o.timeout = run.timeout;
    return make_communicator(o);
  });
  _exit(code);
}

pid_t start_mpirun(const std::string& name, const StoreOptions& store, const RunOptions& o) {
  const pid_t parent = getpid(), child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(3);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string filter = str("--gtest_filter=", kMpiFilter, name);
  const std::string count = std::to_string(kRanks);
  const std::string to_store = str("FLEETX_STORE=", to_string(store.server));
  const std::string secret = "FLEETX_JOB_SECRET=" + store.secret;
  const std::string timeout = str("FLEETX_COMM_TIMEOUT=", o.timeout.count() / 1000);
  std::vector<const char*> args{"mpirun", "-n", count.c_str(), "--oversubscribe",
                                "--allow-run-as-root", "-x", to_store.c_str(), "-x", secret.c_str(),
                                "-x", timeout.c_str(),
                                // Over TCP between processes nothing needs to be traced.
                                "--mca", "btl_vader_single_copy_mechanism", "none"};
  if (o.some_die) args.push_back("--enable-recovery");
  args.insert(args.end(), {self.c_str(), "--gtest_brief=1", filter.c_str(), nullptr});
  execvp("mpirun", const_cast<char* const*>(args.data()));
  _exit(127);
}

bool run_threads(const std::string& name, const RunOptions& o) {
  auto ranks = make_local(o.hosts.empty() ? kRanks : static_cast<int>(o.hosts.size()), o.timeout);
  std::vector<std::thread> threads;
  for (auto& rank : ranks)
    threads.emplace_back([&] {
      const auto own = std::move(rank);
      try {
        rank_functions().at(name)(*own);
      } catch (const std::exception& e) {
        ADD_FAILURE() << "rank " << own->rank() << ": " << e.what();
      }
    });
  for (auto& t : threads) t.join();
  return !::testing::Test::HasFailure();
}

// The exit code, or 128 + signal; -1: it had to be killed.
int wait_for(pid_t pid, Deadline deadline, bool killed_is_fine) {
  int status = 0;
  bool in_time = true;
  for (;;) {
    const pid_t done = waitpid(pid, &status, WNOHANG);
    if (done == pid) break;
    if (Clock::now() >= deadline) {
      in_time = killed_is_fine;
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      break;
    }
    std::this_thread::sleep_for(Milliseconds(2));
  }
  if (!in_time) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool is_stopped(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

}  // namespace

std::map<std::string, RankFn>& rank_functions() {
  static std::map<std::string, RankFn> functions;
  return functions;
}

bool have_mpi() {
  for (const char* folder : {"/usr/bin", "/usr/local/bin"})
    if (std::filesystem::exists(std::filesystem::path(folder) / "mpirun")) return true;
  return false;
}

bool run_ranks(const std::string& backend, const std::string& name, const RunOptions& o) {
  if (backend == "local") return run_threads(name, o);
  // The server's thread starts after the processes are there: a fork copies no threads.
  Fd listener = listen_on({"127.0.0.1", 0});
  const StoreOptions store{.server = local_endpoint(listener.get()), .secret = make_secret()};
  std::vector<pid_t> pids;
  if (backend == "mpi")
    pids.push_back(start_mpirun(name, store, o));
  else
    for (int r = 0; r < (o.hosts.empty() ? kRanks : static_cast<int>(o.hosts.size())); ++r)
      pids.push_back(start_rank(backend, name, r, store, o));
  StoreServer server({.listen_fd = dup(listener.get()), .secret = store.secret});
  const Deadline deadline = after(o.most);
  bool good = true;
  // Those that stopped themselves go last.
  std::stable_partition(pids.begin(), pids.end(), [&](pid_t pid) { return !is_stopped(pid); });
  for (size_t i = 0; i < pids.size(); ++i) {
    while (o.some_die && is_stopped(pids[i]) && i + 1 < pids.size()) {
      std::rotate(pids.begin() + static_cast<long>(i), pids.begin() + static_cast<long>(i) + 1,
                  pids.end());
      std::this_thread::sleep_for(Milliseconds(2));
    }
    const bool stopped = o.some_die && is_stopped(pids[i]);
    const int code = wait_for(pids[i], stopped ? Clock::now() : deadline, stopped);
    const bool fine = code == 0 || (o.some_die && code == 128 + SIGKILL);
    if (!fine) {
      good = false;
      ADD_FAILURE() << backend << ", " << name << ": process " << i
                    << (code < 0 ? " hangs" : str(" ended with ", code));
    }
  }
  return good;
}

// What mpirun starts.
class MpiRank : public ::testing::TestWithParam<std::string> {};

TEST_P(MpiRank, Run) {
  const JobEnv job = JobEnv::from_environment();
  ASSERT_EQ(job.world, kRanks) << "this is started by mpirun";
  const int failed = run_here(GetParam(), str("rank ", job.rank), [&] {
    return make_communicator(
        {.rank = job.rank,
         .size = job.world,
         .store = std::make_shared<StoreClient>(store_options_from_env(job.rank)),
         .backend = "mpi"});
  });
  ASSERT_EQ(failed, 0);
}

std::vector<std::string> functions_for_mpi() {
  std::vector<std::string> names;
  if (!GTEST_FLAG_GET(filter).starts_with(kMpiFilter)) return names;
  for (const auto& [name, fn] : rank_functions()) names.push_back(name);
  return names;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MpiRank);
INSTANTIATE_TEST_SUITE_P(All, MpiRank, ::testing::ValuesIn(functions_for_mpi()),
                         [](const auto& info) { return info.param; });

}  // namespace fleetx::testing
