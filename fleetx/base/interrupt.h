// A front end that must be able to stop what a thread does or waits for (Ctrl-C in Python) has it
// asked: before every op of a plan, and while it waits for other ranks. The answer is an exception
// that goes up to the front end. Parameters then are as far as the step had come.
//
//   const InterruptCheck check(&ask_python);
//   exe.run(...);
#pragma once

namespace fleetx {

// As long as it lives, check_interrupt() calls `check` on this thread; it must be cheap.
class InterruptCheck {
 public:
  explicit InterruptCheck(void (*check)());
  ~InterruptCheck();
  InterruptCheck(const InterruptCheck&) = delete;
  InterruptCheck& operator=(const InterruptCheck&) = delete;

 private:
  void (*const outer_)();
};

void check_interrupt();
bool interruptible();  // whether this thread is asked at all

}  // namespace fleetx
