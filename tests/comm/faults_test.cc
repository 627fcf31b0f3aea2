// A rank dies or stops before, in the middle of or after a collective: every other rank gets an
// error in time that names it. For each backend that has processes; printed as a table.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "fleetx/base/interrupt.h"
#include "tests/comm/ranks.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

using namespace comm;

constexpr int kVictim = 2;
constexpr int64_t kStep = 40;
constexpr int64_t kLarge = 6'000'000;

enum class Phase { kBefore, kMiddle, kAfter };

void strike(int signal) {
  // All threads of the process, wherever it is.
  kill(getpid(), signal);
  std::this_thread::sleep_for(std::chrono::hours(1));
}

void be_the_victim(Communicator& c, int signal, Phase phase) {
  std::vector<float> data(kLarge);
  if (phase == Phase::kBefore) strike(signal);
  if (phase == Phase::kAfter) {
    c.all_reduce(data.data(), kLarge, f32);
    strike(signal);
  }
  std::thread([signal] {
    std::this_thread::sleep_for(Milliseconds(60));
    strike(signal);
  }).detach();
  for (;;) c.all_reduce(data.data(), kLarge, f32);
}

void survive(Communicator& c, int signal, Milliseconds timeout) {
  std::vector<float> data(kLarge);
  const auto begin = Clock::now();
  auto last = begin;
  try {
    for (;;) {
      last = Clock::now();
      c.all_reduce(data.data(), kLarge, f32);
    }
  } catch (const Error& e) {
    const double seconds = seconds_since(last);
    EXPECT_LT(seconds,
              signal == SIGKILL ? 5.0 : std::chrono::duration<double>(timeout).count() + 1.0)
        << "rank " << c.rank();
    EXPECT_EQ(to_string(e.kind()),
              to_string(signal == SIGKILL ? Error::Kind::kComm : Error::Kind::kTimeout))
        << e.what();
    const Member& victim = c.members()[kVictim];
    for (const std::string& part :
         {str("rank ", kVictim, " on host "), str("(pid ", victim.pid, ")"),
          std::string("all_reduce of 6000000 f32 (sum)"), std::string("call #"),
          str("in step ", kStep)})
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos)
          << "rank " << c.rank() << ": '" << part << "' is not in: " << e.what();
    if (c.rank() == 0) std::fprintf(stderr, "  rank 0 after %.2f s: %s\n", seconds, e.what());
  }
  // The group is broken, and later calls fail at once.
  float x = 0;
  const auto again = Clock::now();
  expect_error(Error::Kind::kComm, {"broken", str("rank ", kVictim)},
               [&] { c.all_reduce(&x, 1, f32); });
  EXPECT_LT(seconds_since(again), 0.5);
}

RankFn fault(int signal, Phase phase) {
  return [=](Communicator& c) {
    c.barrier();
    c.set_step(kStep);
    if (c.rank() == kVictim) return be_the_victim(c, signal, phase);
    survive(c, signal, c.timeout());
    if (signal != SIGSTOP || c.backend() != "mpi") return;
    kill(static_cast<pid_t>(c.members()[kVictim].pid), SIGKILL);  // mpirun waits for it
  };
}

const RegisterRankFn cases[] = {{"kill_before", fault(SIGKILL, Phase::kBefore)},
                                {"kill_middle", fault(SIGKILL, Phase::kMiddle)},
                                {"kill_after", fault(SIGKILL, Phase::kAfter)},
                                {"stop_before", fault(SIGSTOP, Phase::kBefore)},
                                {"stop_middle", fault(SIGSTOP, Phase::kMiddle)},
                                {"stop_after", fault(SIGSTOP, Phase::kAfter)}};

// Threads cannot be killed, but they can leave, or not make the call.
const RegisterRankFn leaves("leaves", [](Communicator& c) {
  c.set_step(kStep);
  float x = 1;
  c.all_reduce(&x, 1, f32);
  if (c.rank() == kVictim) return;
  expect_error(Error::Kind::kComm, {"rank 2", "has left", "all_reduce of 1 f32", "step 40"},
               [&] { c.all_reduce(&x, 1, f32); });
});
const RegisterRankFn missing_call("missing_call", [](Communicator& c) {
  float x = 1;
  const auto begin = Clock::now();
  if (c.rank() == kVictim) {
    std::this_thread::sleep_for(Milliseconds(1500));
    return;
  }
  expect_error(Error::Kind::kTimeout, {"rank 2", "did not answer"}, [&] {
    c.run(Call::all_reduce(&x, 1, f32, ReduceOp::kSum).within(Milliseconds(500)));
  });
  EXPECT_LT(seconds_since(begin), 1.5);
});
// A rank that makes the call after its peers have timed out gets the failure, too.
const RegisterRankFn late_call("late_call", [](Communicator& c) {
  c.barrier();
  if (c.rank() == kVictim) std::this_thread::sleep_for(Milliseconds(2'000));
  expect_error(Error::Kind::kTimeout, {"rank 2 on host"},
               [&] { c.run(Call::barrier().within(Milliseconds(1'000))); });
});
// A message that nobody sends.
const RegisterRankFn no_message("no_message", [](Communicator& c) {
  float x = 1;
  if (c.rank() == 0)
    expect_error(Error::Kind::kTimeout, {"recv of 1 f32 (from 2, tag 9)", "rank 2"},
                 [&] { c.run(Call::recv(&x, 1, f32, kVictim, 9).within(Milliseconds(500))); });
  else
    std::this_thread::sleep_for(Milliseconds(1500));
});

// The user of rank 2 interrupts it while it waits for rank 0, which is late: in a blocking call, or
// in a posted one for "posted". The exception reaches the caller, and the peers get a failure that
// names rank 2.
struct UserWantsToStop {};

void give_up_after_a_moment() {
  static const auto begin = Clock::now();
  if (seconds_since(begin) > 0.3) throw UserWantsToStop();
}

RankFn interrupted(bool posted) {
  return [posted](Communicator& c) {
    c.barrier();
    float x = 1;
    const auto begin = Clock::now();
    const auto call = [&] {
      const Call all = Call::all_reduce(&x, 1, f32, ReduceOp::kSum);
      posted ? c.await(c.post(all)) : c.run(all);
    };
    if (c.rank() == kVictim) {
      {
        const InterruptCheck check(&give_up_after_a_moment);
        EXPECT_THROW(call(), UserWantsToStop);
      }
      c.settle();
    } else if (c.rank() == 0) {
      std::this_thread::sleep_for(Milliseconds(1000));
      try {
        call();  // it may have everything it needs before the interrupt
      } catch (const Error&) {
      }
    } else {
      expect_error(Error::Kind::kComm, {"rank 2", "was interrupted"}, call);
    }
    EXPECT_LT(seconds_since(begin), 3.0);
    expect_error(Error::Kind::kComm, {"rank 2", "was interrupted"}, call);
  };
}
const RegisterRankFn interrupted_cases[] = {{"interrupted", interrupted(false)},
                                            {"interrupted_posted", interrupted(true)}};

// Names in /dev/shm and processes of ours, to see that nothing is left behind. clang's OpenMP keeps
// a file there for each process, which one that is killed leaves.
std::vector<std::string> names_in(const char* folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("__KMP_REGISTERED_LIB")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

int children() {
  const pid_t self = getpid();
  std::ifstream list(str("/proc/self/task/", self, "/children"));
  int count = 0;
  for (int pid = 0; list >> pid;) ++count;
  return count;
}

class Faults : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

void expect_report_in_time(const std::string& backend, const std::string& name) {
  if (backend == "mpi" && !have_mpi()) GTEST_SKIP() << "mpirun is not installed";
  const std::vector<std::string> before = names_in("/dev/shm");
  const bool stop = name.starts_with("stop");
  EXPECT_TRUE(run_ranks(backend, name,
                        {.timeout = Milliseconds(stop ? 2'000 : 20'000),
                         .most = Milliseconds(30'000),
                         .some_die = true}));
  EXPECT_EQ(children(), 0);
  EXPECT_EQ(names_in("/dev/shm"), before);
}

TEST_P(Faults, AreReportedInTime) {
  const auto [backend, name] = GetParam();
  expect_report_in_time(backend, name);
}

TEST(MpiCollectives, ReportFaultsInTime) {
  setenv("FLEETX_MPI_COLLECTIVES", "1", 1);
  for (const char* name : {"kill_middle", "stop_middle"}) expect_report_in_time("mpi", name);
  unsetenv("FLEETX_MPI_COLLECTIVES");
}

INSTANTIATE_TEST_SUITE_P(
    All, Faults,
    ::testing::Combine(::testing::Values("shm", "tcp", "hierarchical", "mpi"),
                       ::testing::Values("kill_before", "kill_middle", "kill_after", "stop_before",
                                         "stop_middle", "stop_after")),
    [](const auto& info) { return str(std::get<0>(info.param), "_", std::get<1>(info.param)); });

class Interrupts : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Interrupts, EndWaitsOnAllRanks) {
  const auto [backend, name] = GetParam();
  EXPECT_TRUE(run_ranks(backend, name, {.most = Milliseconds(30'000)}));
}

INSTANTIATE_TEST_SUITE_P(All, Interrupts,
                         ::testing::Combine(::testing::Values("shm", "tcp", "hierarchical"),
                                            ::testing::Values("interrupted", "interrupted_posted")),
                         [](const auto& info) {
                           return str(std::get<0>(info.param), "_", std::get<1>(info.param));
                         });

TEST(LocalFaults, ErrorNamesARankThatLeft) { EXPECT_TRUE(run_ranks("local", "leaves")); }
TEST(LocalFaults, ErrorNamesARankThatLeftShm) { EXPECT_TRUE(run_ranks("shm", "leaves")); }
TEST(LocalFaults, TimeoutNamesTheMissingRank) { EXPECT_TRUE(run_ranks("local", "missing_call")); }
TEST(LocalFaults, LateRankGetsTheFailure) {
  for (const char* backend : {"shm", "tcp", "hierarchical"})
    EXPECT_TRUE(run_ranks(backend, "late_call"));
}
TEST(LocalFaults, TimeoutNamesTheMissingSender) {
  EXPECT_TRUE(run_ranks("local", "no_message"));
  EXPECT_TRUE(run_ranks("shm", "no_message"));
  EXPECT_TRUE(run_ranks("tcp", "no_message"));
}

}  // namespace
}  // namespace fleetx::testing
