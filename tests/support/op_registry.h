// All op cases by op, made on the first call; also those that are only timed, if that asks for
// them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/op_case.h"

namespace fleetx::testing {

const std::map<std::string, std::vector<OpCase>>& op_cases(bool timed = false);

}  // namespace fleetx::testing
