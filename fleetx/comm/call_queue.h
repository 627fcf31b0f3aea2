// Runs the calls of a communicator in the order they were made. Asynchronous calls run on the
// queue's own thread; a blocking call runs on the caller's thread once the queue is empty.
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

// A handle of an asynchronous call. Copies refer to the same call. Every wait rethrows its error.
class Work {
 public:
  Work() = default;  // done
  void wait() const;
  bool wait_for(Milliseconds time) const;  // false: not done yet
  bool test() const { return wait_for(Milliseconds(0)); }

 private:
  friend class CallQueue;
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::exception_ptr error;
    // The function to call, and the next entry of the queue.
    void (*call)(void*) = nullptr;
    alignas(std::max_align_t) std::byte function[128];
    State* next = nullptr;
  };
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

class CallQueue {
 public:
  ~CallQueue() { stop(); }

  // Reuses the states of finished calls: no allocation in the steady state.
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
  // Waits for the call in flight; queued calls fail.
  void stop();
  // Whether the calling thread is a queue's thread, which shares its core with the computation.
  static bool on_thread();

 private:
  struct Turn {
    CallQueue* queue;
    ~Turn() { queue->end_turn(); }
  };
  void take_turn();
  void end_turn();
  std::shared_ptr<Work::State> free_state();
  void append(Work::State& state);
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Work::State>> states_;  // all of them, for reuse
  Work::State *first_ = nullptr, *last_ = nullptr;    // the queued calls
  bool busy_ = false;
  std::atomic<bool> stop_ = false;
  int waiting_ = 0;
  std::thread thread_;
};

}  // namespace fleetx::comm
