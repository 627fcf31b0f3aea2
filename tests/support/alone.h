// For op cases, which run in one process: the group "alone", of one rank.
#pragma once

#include "fleetx/comm/groups.h"

namespace fleetx::testing {

inline const bool kAloneIsThere = [] {
  auto groups = std::make_shared<comm::Groups>();
  groups->add("alone", std::move(comm::make_local(1).front()));
  comm::set_process_groups(std::move(groups));
  return true;
}();

}  // namespace fleetx::testing
