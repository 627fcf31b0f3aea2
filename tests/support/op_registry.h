// All registered op cases, by op.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/op_case.h"

namespace fleetx::testing {

std::map<std::string, std::vector<OpCase>>& op_cases();

}  // namespace fleetx::testing
