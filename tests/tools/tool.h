// Runs the built `fleetx` command as a process of its own, as a user would.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::testing {

struct ToolResult {
  int code = -1;  // 128 + signal where it crashed
  std::string out, err;
};

// `env` is added to the environment.
ToolResult run_tool(const std::vector<std::string>& args,
                    const std::map<std::string, std::string>& env = {});

// A small program for commands to look at.
inline const char* const kProgram =
    "program {seed=7}\n"
    "data x : f32[-1,4] stop_gradient\n"
    "param w : f32[4]\n"
    "var s : f32[-1,4]\n"
    "var y : f32[-1,4]\n"
    "forward:\n"
    "s = scale(x) {scale=2.0}\n"
    "y = elementwise_add(s, w)\n";

// One line "fleetx: error: ..." with `part` in it, and this exit code.
void expect_error(const ToolResult& r, int code, const std::string& part);

}  // namespace fleetx::testing
