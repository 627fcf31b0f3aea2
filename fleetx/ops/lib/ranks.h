// Of ops whose shapes or values depend on how many ranks their group has: the attribute `ranks`,
// for which the program was made.
#pragma once

#include "fleetx/kernel/group.h"
#include "fleetx/kernel/op.h"

namespace fleetx::ops {

inline void check_ranks(const ir::Infer& c) {
  c.check(c.attr<int64_t>("ranks") >= 1, "ranks is ", c.attr<int64_t>("ranks"),
          "; must be at least 1");
}

// The group that the op names. One of another size is kInvalidArgument.
inline kernel::Group group_of_ranks(kernel::Prepare& p) {
  kernel::Group group = p.group(p.attr<std::string>("group"));
  check_arg(group.size() == p.attr<int64_t>("ranks"), group.op(), "the program is for ",
            p.attr<int64_t>("ranks"), " ranks, the group '", group.name(), "' has ", group.size());
  return group;
}

}  // namespace fleetx::ops
