// All op cases by op. Made on the first call, because large inputs take time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/op_case.h"

namespace fleetx::testing {

const std::map<std::string, std::vector<OpCase>>& op_cases();

}  // namespace fleetx::testing
