// What a step that starts a call leaves for the one that waits for it: the memory of an i64
// variable that both name. More may follow behind it, on a 64-byte boundary.
#pragma once

#include "fleetx/comm/communicator.h"

namespace fleetx::kernel {

struct alignas(64) Ticket {
  int64_t number = kNone;  // the op's; kNone: there is nothing to wait for
  comm::CallRecord record;

  static constexpr int64_t kNone = -1;
};
static_assert(sizeof(Ticket) == 64);

inline constexpr int64_t kTicketWords = sizeof(Ticket) / sizeof(int64_t);

}  // namespace fleetx::kernel
