// Runs calls in the order they were made: those that are started on a thread of its own, those that
// are waited for in the caller's when nothing is before them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <type_traits>
#include <vector>

#include "fleetx/comm/deadline.h"

namespace fleetx::comm {

// A call that was started. Copies mean the same call. Its error is thrown by every wait.
class Work {
 public:
  Work() = default;  // done
  void wait() const;
  bool wait_for(Milliseconds time) const;  // false: not done yet
  bool test() const { return wait_for(Milliseconds(0)); }

 private:
  friend class Lane;
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::exception_ptr error;
    // What is to be done, and what comes after it in the lane.
    void (*call)(void*) = nullptr;
    alignas(std::max_align_t) std::byte function[128];
    State* next = nullptr;
  };
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

class Lane {
 public:
  ~Lane() { stop(); }

  // Allocates nothing once as many calls as now were under way before.
  template <class Fn>
  Work start(const Fn& fn) {
    static_assert(std::is_trivially_copyable_v<Fn> && sizeof(Fn) <= sizeof(Work::State::function));
    const std::scoped_lock lock(mutex_);
    std::shared_ptr<Work::State> state = free_state();
    new (state->function) Fn(fn);
    state->call = [](void* function) { (*static_cast<Fn*>(function))(); };
    append(*state);
    return Work(std::move(state));
  }
  template <class Fn>
  void run(const Fn& fn) {
    take_turn();
    const Turn turn{this};
    fn();
  }
  // Waits for the call that runs; those behind it fail.
  void stop();
  // Whether the calling thread is a lane's: it shares its core with the computation.
  static bool on_lane();

 private:
  struct Turn {
    Lane* lane;
    ~Turn() { lane->end_turn(); }
  };
  void take_turn();
  void end_turn();
  std::shared_ptr<Work::State> free_state();
  void append(Work::State& state);
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Work::State>> states_;  // all that there are, to be used again
  Work::State *first_ = nullptr, *last_ = nullptr;    // those that wait for their turn
  bool busy_ = false;
  std::atomic<bool> stop_ = false;
  int waiting_ = 0;
  std::thread thread_;
};

}  // namespace fleetx::comm
