// Turns the registered op cases into tests, or times them. Used by main.cc.
#pragma once

#include <string>

namespace fleetx::testing {

void register_op_tests();
// Prints one line per case whose "op.label" contains `filter`: best time, GFLOP/s, GB/s. Returns an
// exit code.
int time_op_cases(const std::string& filter);

}  // namespace fleetx::testing
