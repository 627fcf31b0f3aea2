// Lets a caller stop what a thread does or waits for (Ctrl-C in Python, a signal to fleetrun). The
// check runs before every op of a plan and while the thread waits for other ranks or machines. It
// throws to stop; the exception reaches the caller. Parameters keep the values of the ops that ran.
//
//   const InterruptCheck check(&check_python_signals);
//   exe.run(...);
#pragma once

#include <functional>

namespace fleetx {

// While it lives, check_interrupt() calls `check` on this thread. The check must be cheap.
class InterruptCheck {
 public:
  explicit InterruptCheck(std::function<void()> check);
  ~InterruptCheck();
  InterruptCheck(const InterruptCheck&) = delete;
  InterruptCheck& operator=(const InterruptCheck&) = delete;

 private:
  const std::function<void()> check_;
  const InterruptCheck* const outer_;

  friend void check_interrupt();
};

void check_interrupt();
bool interruptible();  // whether this thread has a check

}  // namespace fleetx
