// Runs the built `fleetx` command as a process of its own, as a user would.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace fleetx::testing {

struct ToolResult {
  int code = -1;  // 128 + signal where it crashed
  std::string out, err;
};

// `env` is added to the environment.
ToolResult run_tool(const std::vector<std::string>& args,
                    const std::map<std::string, std::string>& env = {});

// A new folder that vanishes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path folder_;
};

::testing::AssertionResult contains(const std::string& text, const std::string& part);

// One line "fleetx: error: ..." with `part` in it, and this exit code.
void expect_error(const ToolResult& r, int code, const std::string& part);

}  // namespace fleetx::testing
