#include "fleetx/base/team.h"

#include <gtest/gtest.h>
#include <immintrin.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "fleetx/base/threads.h"
#include "tests/support/sanitized.h"

namespace fleetx {
namespace {

using namespace std::chrono_literals;

template <class Body>
void run(int parts, const Body& body, team::Runs runs = team::Runs::kAnywhere) {
  const auto part = [](void* context, int p) { (*static_cast<const Body*>(context))(p); };
  team::run(parts, part, const_cast<Body*>(&body), runs);
}

double cpu_ms(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return double(t.tv_sec) * 1e3 + double(t.tv_nsec) * 1e-6;
}

TEST(Team, EveryPartRunsOnce) {
  for (int round = 0; round < 2000; ++round) {
    const int parts = 1 + round % 5;
    std::vector<std::atomic<int>> seen(static_cast<size_t>(parts));
    run(parts, [&](int part) { ++seen[static_cast<size_t>(part)]; });
    for (const auto& count : seen) ASSERT_EQ(count, 1);
  }
}

TEST(Team, WritesAreSeenAfterwards) {
  std::vector<int> values(4);  // not atomic: the end of a region orders them
  for (int round = 1; round <= 5000; ++round) {
    run(4, [&](int part) { values[static_cast<size_t>(part)] += round; });
    ASSERT_EQ(std::accumulate(values.begin(), values.end(), 0), 4 * round * (round + 1) / 2);
  }
}

// A helper that sleeps takes longer to wake up than the leader needs for both parts.
TEST(Team, APartThatNobodyHasBegunIsTakenByWhoeverIsFree) {
  const auto self = std::this_thread::get_id();
  std::atomic<int> taken{0};
  for (int round = 0; round < 20; ++round) {
    run(2, [&](int part) { taken += part == 1 && std::this_thread::get_id() == self; });
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_GT(taken, 0);
}

// Parts may wait for each other, as oneDNN's do: every part gets a thread.
TEST(Team, PartsThatWaitForEachOtherAllRun) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> begun{0};
    run(4, [&](int) {
      ++begun;
      while (begun < 4) std::this_thread::yield();
    });
    ASSERT_EQ(begun, 4);
  }
}

TEST(Team, EverywhereMeansEveryThread) {
  for (int round = 0; round < 100; ++round) {
    std::mutex mutex;
    std::set<std::thread::id> threads;
    run(
        3,
        [&](int) {
          const std::scoped_lock lock(mutex);
          threads.insert(std::this_thread::get_id());
        },
        team::Runs::kEverywhere);
    EXPECT_EQ(threads.size(), 3u);
  }
}

TEST(Team, ABarrierWaitsForAllParts) {
  std::atomic<int> before{0}, wrong{0};
  for (int round = 0; round < 200; ++round) {
    before = 0;
    run(3, [&](int part) {
      for (int phase = 1; phase <= 3; ++phase) {
        if (part == phase - 1 && round % 50 == 0) std::this_thread::sleep_for(2ms);
        ++before;
        team::barrier();
        if (before < 3 * phase) ++wrong;
        team::barrier();
      }
    });
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Team, ARegionInsideARegionRunsOnItsThread) {
  std::atomic<int> inner{0}, strangers{0};
  run(2, [&](int) {
    const auto self = std::this_thread::get_id();
    EXPECT_TRUE(team::place().parallel);
    run(3, [&](int) {
      ++inner;
      if (std::this_thread::get_id() != self) ++strangers;
    });
    EXPECT_EQ(team::place().parts, 2);
  });
  EXPECT_EQ(inner, 6);
  EXPECT_EQ(strangers, 0);
  EXPECT_FALSE(team::place().parallel);
}

TEST(Team, ThreadsThatLeadHaveTeamsOfTheirOwn) {
  std::vector<std::thread> leaders;
  std::atomic<int> parts{0};
  for (int i = 0; i < 4; ++i)
    leaders.emplace_back([&] {
      for (int round = 0; round < 200; ++round) run(3, [&](int) { ++parts; });
    });
  for (std::thread& t : leaders) t.join();
  EXPECT_EQ(parts, 4 * 200 * 3);
}

TEST(Team, HelpersComputeInTheCallersMode) {
  const unsigned saved = _mm_getcsr();
  for (const bool flush : {false, true, false}) {
    _mm_setcsr(saved & ~0x8040u);
    if (flush) flush_denormals();
    std::atomic<int> flushing{0};
    run(
        2,
        [&](int) {
          volatile float tiny = 1e-38f;
          if (tiny * 0.01f == 0.0f) ++flushing;
        },
        team::Runs::kEverywhere);
    EXPECT_EQ(flushing, flush ? 2 : 0);
  }
  _mm_setcsr(saved);
}

// GNU OpenMP spins for milliseconds where its threads wait; on a shared machine that takes the core
// from whoever is waited for.
TEST(Team, WhoWaitsSoonSleeps) {
  if (testing::kSanitized) GTEST_SKIP() << "sanitized code takes longer";
  run(2, [](int) {});
  const double before = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
  std::this_thread::sleep_for(100ms);  // the helper waits for the next region
  EXPECT_LT(cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - before, 20);
  const double leader = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
  std::atomic<int> begun{0};
  run(2, [&](int) {  // the leader waits for its helper, or a helper for the next region
    ++begun;
    while (begun < 2) std::this_thread::yield();
    if (team::place().part == 1) std::this_thread::sleep_for(100ms);
  });
  EXPECT_LT(cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - leader, 40);
  run(2, [&](int part) {
    if (part == 1) std::this_thread::sleep_for(100ms);
    const double at_barrier = cpu_ms(CLOCK_THREAD_CPUTIME_ID);
    team::barrier();
    EXPECT_LT(cpu_ms(CLOCK_THREAD_CPUTIME_ID) - at_barrier, 20);
  });
}

TEST(Team, AChildProcessGetsThreadsOfItsOwn) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's own locks do not survive fork";
  run(3, [](int) {});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::atomic<int> parts{0};
    for (int i = 0; i < 10; ++i) run(3, [&](int) { ++parts; });
    std::thread([&] { run(3, [&](int) { ++parts; }); }).join();
    std::_Exit(parts == 33 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Team, TooManyPartsAreRefused) {
  EXPECT_ANY_THROW(run(team::kMost + 1, [](int) {}));
  run(0, [](int) { FAIL(); });
}

}  // namespace
}  // namespace fleetx
