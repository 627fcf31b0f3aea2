// What the collective ops have in common: collective.cc registers them, collective_kernels.cc runs
// them. Which ops there are and what they do stands in collective.cc.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "fleetx/comm/communicator.h"
#include "fleetx/kernel/op.h"
#include "fleetx/kernel/ticket.h"

namespace fleetx::ops {

// One collective; its call in comm/ has the same name.
struct Collective {
  std::string_view name;
  comm::CallKind call;
  bool reduces = false;     // attribute op: how ranks are combined
  bool rooted = false;      // attribute root
  bool resizes = false;     // attribute ranks: dimension 0 is cut or put together
  bool is_message = false;  // attributes peer and tag
  // out has the type of x and may be x: the call works on out, into which x is copied before.
  bool in_place = false;
  // The call reads x until it is done. (The others have copied what they need before it starts.)
  bool reads_late = false;
};

enum class Form : uint8_t { kBlocking, kStart, kWait };

struct CollectiveOp {
  const Collective* collective;
  Form form;
};
// Of a registered op: "all_gather_wait".
CollectiveOp collective_of(std::string_view type);

std::optional<comm::ReduceOp> reduce_op_of(std::string_view name);  // "sum"

// Behind a ticket there is room for the marks of the layouts (see collective_kernels.cc).
inline constexpr int64_t kMarks = 16;
inline constexpr int64_t kTicketSize = kernel::kTicketWords + kMarks / 2;  // of i64; marks are f32

std::unique_ptr<kernel::Kernel> make_collective_kernel(kernel::Prepare& p);

}  // namespace fleetx::ops
