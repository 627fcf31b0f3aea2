// Ctrl-C while C++ computes or waits.
#pragma once

#include <signal.h>

#include <optional>

#include "bindings/gil.h"
#include "fleetx/base/interrupt.h"

namespace fleetx::python {

// While one lives, Ctrl-C ends what this thread does with KeyboardInterrupt (or what a handler of
// the script's own raises). Made with the GIL held. Signals are for the main thread of the
// interpreter: on others it does nothing.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  std::optional<InterruptCheck> check_;
};

// While C++ computes or waits for others: Python's other threads run, and Ctrl-C ends it.
struct Waiting {
  const Interruptible guard;
  const GilReleased release;
};

}  // namespace fleetx::python
