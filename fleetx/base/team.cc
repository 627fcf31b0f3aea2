#include "fleetx/base/team.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "fleetx/base/error.h"
#include "fleetx/base/team_regions.h"

namespace fleetx::team {

std::atomic<int> regions{0};

namespace {

// --- waiting ------------------------------------------------------------------------------------

// How many looks take kSpinMicros. Counted instead of timed: a thread that is interrupted while it
// spins has not spun.
int looks() {
  static const int count = [] {
    constexpr int kPauses = 500;
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      for (int pause = 0; pause < kPauses; ++pause) _mm_pause();
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      best = std::min(best, took.count());
    }
    return static_cast<int>(kSpinMicros * kPauses / std::max(best, 0.1));
  }();
  return count;
}

using Sleeper = std::atomic<uint32_t>;  // 1: asleep, or about to be

void wake(Sleeper& sleeper) {
  if (sleeper.load() == 0 || sleeper.exchange(0) == 0) return;
  syscall(SYS_futex, &sleeper, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// Whoever makes ready() true calls wake() afterwards. All of it is sequentially consistent: either
// the sleeper sees what happened, or who made it happen sees the sleeper.
template <class Ready>
void wait(Sleeper& sleeper, const Ready& ready) {
  for (int look = looks(); look > 0; --look) {
    if (ready()) return;
    _mm_pause();
  }
  while (!ready()) {
    sleeper.store(1);
    if (!ready()) syscall(SYS_futex, &sleeper, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
    sleeper.store(0);
  }
}

// --- one team -----------------------------------------------------------------------------------

class Team;

struct Current {
  Team* team = nullptr;
  Place place;
};
thread_local Current current;

struct Region {
  Body body = nullptr;
  void* context = nullptr;
  int parts = 0;  // 0: the team is dissolved
  Runs runs = Runs::kAnywhere;
  unsigned floating_point = 0;
};

class Team {
 public:
  Team() { slots_[0] = std::make_unique<Slot>(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() {
    if (threads_ == 1) return;
    publish({});
    for (int i = 1; i < threads_; ++i) wake(slots_[size_t(i)]->sleeper);
    for (int i = 1; i < threads_; ++i) slots_[size_t(i)]->thread.join();
  }

  void run(Region region) {
    grow(region.parts);
    regions.fetch_add(1, std::memory_order_relaxed);
    region.floating_point = _mm_getcsr();
    unfinished_.store(region.parts, std::memory_order_relaxed);
    const uint64_t number = publish(region);
    wake_below(0, region.parts);
    work(region, number, 0);
    wait(slots_[0]->sleeper, [&] { return unfinished_.load() == 0; });
    regions.fetch_sub(1, std::memory_order_relaxed);
  }

  void barrier(const Place& place) {
    const uint64_t round = round_.load();
    if (arrived_.fetch_add(1) + 1 == place.parts) {
      arrived_.store(0);
      round_.store(round + 1);
      for (int i = 0; i < place.parts; ++i) wake(slots_[size_t(i)]->at_barrier);
      return;
    }
    wait(slots_[size_t(place.part)]->at_barrier, [&] { return round_.load() != round; });
  }

 private:
  // One per thread and per part; on a cache line of its own.
  struct alignas(64) Slot {
    std::atomic<uint64_t> claimed{0};  // the last region whose part of this index somebody took
    Sleeper sleeper{0};                // the thread of this index
    Sleeper at_barrier{0};             // whoever runs the part of this index
    std::thread thread;
  };

  void grow(int threads) {
    for (; threads_ < threads; ++threads_) {
      const int index = threads_;
      auto slot = std::make_unique<Slot>();
      slot->claimed = number_.load();
      slots_[size_t(index)] = std::move(slot);
      slots_[size_t(index)]->thread = std::thread([this, index, seen = number_.load()] {
        pthread_setname_np(pthread_self(), "fleetx-team");
        serve(index, seen);
      });
    }
  }

  // The region can be read while number_ is even, and unchanged afterwards. Stores that release and
  // loads that acquire: who has read a field of a later region sees the later number, too.
  uint64_t publish(const Region& r) {
    const uint64_t number = number_.load(std::memory_order_relaxed) + 2;
    number_.store(number - 1, std::memory_order_relaxed);
    body_.store(r.body, std::memory_order_release);
    context_.store(r.context, std::memory_order_release);
    parts_.store(r.parts, std::memory_order_release);
    runs_.store(r.runs, std::memory_order_release);
    floating_point_.store(r.floating_point, std::memory_order_release);
    number_.store(number);
    return number;
  }

  bool read(Region& r, uint64_t number) const {
    r.body = body_.load(std::memory_order_acquire);
    r.context = context_.load(std::memory_order_acquire);
    r.parts = parts_.load(std::memory_order_acquire);
    r.runs = runs_.load(std::memory_order_acquire);
    r.floating_point = floating_point_.load(std::memory_order_acquire);
    return number_.load(std::memory_order_acquire) == number;
  }

  // Wakes the two threads below this one in a binary tree: many are woken in logarithmic time.
  void wake_below(int index, int parts) {
    for (int below = 2 * index + 1; below <= 2 * index + 2 && below < parts; ++below)
      wake(slots_[size_t(below)]->sleeper);
  }

  // A part is taken once: a thread that comes late, with the number of a region that has ended,
  // finds the parts of that region taken.
  bool claim(int part, uint64_t number) {
    std::atomic<uint64_t>& claimed = slots_[size_t(part)]->claimed;
    uint64_t last = claimed.load(std::memory_order_relaxed);
    return last < number && claimed.compare_exchange_strong(last, number);
  }

  // Its own part first: it found the data of it in its cache in the last region.
  void work(const Region& r, uint64_t number, int index) {
    for (int i = 0; i < r.parts; ++i) {
      const int part = (index + i) % r.parts;
      if (claim(part, number)) {
        current = {this, {part, r.parts, true}};
        r.body(r.context, part);
        current = {};
        // The last part wakes the leader, if it sleeps.
        if (unfinished_.fetch_sub(1) == 1) {
          if (index != 0) wake(slots_[0]->sleeper);
          return;
        }
      }
      if (r.runs == Runs::kEverywhere) return;
    }
  }

  void serve(int index, uint64_t seen) {
    for (;;) {
      uint64_t number = 0;
      wait(slots_[size_t(index)]->sleeper, [&] {
        number = number_.load();
        return number != seen && number % 2 == 0;
      });
      Region region;
      if (!read(region, number)) continue;
      seen = number;
      if (region.parts == 0) return;
      wake_below(index, region.parts);
      if (index >= region.parts) continue;
      if (_mm_getcsr() != region.floating_point) _mm_setcsr(region.floating_point);
      work(region, number, index);
    }
  }

  // What helpers look at while they wait, and read when it changes: one line.
  alignas(64) std::atomic<uint64_t> number_{0};  // of the region, in twos; odd: being written
  std::atomic<Body> body_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<int> parts_{0};
  std::atomic<Runs> runs_{Runs::kAnywhere};
  std::atomic<unsigned> floating_point_{0};
  alignas(64) std::atomic<int> unfinished_{0};
  alignas(64) std::atomic<int> arrived_{0};
  std::atomic<uint64_t> round_{0};
  int threads_ = 1;
  std::array<std::unique_ptr<Slot>, kMost> slots_;
};

// A child process has the teams of its parent but not their threads.
std::atomic<int> forks{0};
[[maybe_unused]] const int watched = pthread_atfork(nullptr, nullptr, [] { ++forks; });

struct Led {
  std::unique_ptr<Team> team;
  int born = 0;

  Team& get() {
    if (team && born != forks) abandon();
    if (!team) {
      team = std::make_unique<Team>();
      born = forks;
    }
    return *team;
  }
  void abandon() { static_cast<void>(team.release()); }
  ~Led() {
    if (born != forks) abandon();
  }
};
thread_local Led led;

}  // namespace

void run(int parts, Body body, void* context, Runs runs) {
  check_arg(parts >= 0 && parts <= kMost, "a parallel region of ", parts, " parts; at most ",
            kMost);
  if (parts > 1 && !current.place.parallel)
    return led.get().run({.body = body, .context = context, .parts = parts, .runs = runs});
  const Current outer = current;
  for (int part = 0; part < parts; ++part) {
    current = {nullptr, {part, parts, outer.place.parallel}};
    body(context, part);
  }
  current = outer;
}

Place place() { return current.place; }

void barrier() {
  if (current.team != nullptr) current.team->barrier(current.place);
}

}  // namespace fleetx::team
