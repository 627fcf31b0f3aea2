// Runs calls in the order they were made: those that are started on a thread of its own, those that
// are waited for in the caller's when nothing is before them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

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
  };
  std::shared_ptr<State> state_;
};

class Lane {
 public:
  ~Lane() { stop(); }

  Work start(std::function<void()> fn);
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
  struct Task {
    std::function<void()> fn;
    std::shared_ptr<Work::State> state;
  };
  struct Turn {
    Lane* lane;
    ~Turn() { lane->end_turn(); }
  };
  void take_turn();
  void end_turn();
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool busy_ = false;
  std::atomic<bool> stop_ = false;
  int waiting_ = 0;
  std::thread thread_;
};

}  // namespace fleetx::comm
