// The deadline of calls that do not have their own.
#pragma once

#include "fleetx/base/env.h"
#include "fleetx/base/error.h"
#include "fleetx/comm/deadline.h"

namespace fleetx::comm {

inline Milliseconds timeout_or_default(Milliseconds timeout) {
  if (timeout > Milliseconds::zero()) return timeout;
  const int seconds = env::integer("FLEETX_COMM_TIMEOUT").value_or(300);
  check_arg(seconds > 0, "FLEETX_COMM_TIMEOUT=", seconds, ": expected a number of seconds above 0");
  return std::chrono::seconds(seconds);
}

}  // namespace fleetx::comm
