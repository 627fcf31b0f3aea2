#include "fleetx/kernel/group.h"

#include "fleetx/base/error.h"

namespace fleetx::kernel {

void Group::bind(const comm::Groups& groups) {
  comm::Communicator& found = groups.at(name_, op_);
  check_arg(found.size() == size_, op_, "the plan is for ", size_, " ranks in the group '", name_,
            "', the group has ", found.size());
  check_arg(found.rank() == rank_, op_, "the plan is for rank ", rank_, " of the group '", name_,
            "', this process is its rank ", found.rank());
  communicator_ = &found;
}

}  // namespace fleetx::kernel
