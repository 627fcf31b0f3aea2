// The executor as Python has it: threads of a script may share one, and then take turns.
#pragma once

#include <mutex>

#include "fleetx/runtime/executor.h"

namespace fleetx::python {

struct Executor {
  runtime::Executor runs;
  // Taken without the GIL. The handler of a data set may run programs while that is trained on.
  std::recursive_mutex turn;
};

}  // namespace fleetx::python
