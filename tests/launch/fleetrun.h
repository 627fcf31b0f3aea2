// Runs the built `fleetrun` command as a user would, in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::testing {

struct FleetrunResult {
  int code = -1;  // 128 + signal where it was killed
  double seconds = 0;
  std::string out, err;
};

// A running fleetrun; its working folder holds `log` and goes with the object.
class Fleetrun {
 public:
  // `before` is put before the command ("ip netns exec ..."); `env` is added to the environment.
  explicit Fleetrun(const std::vector<std::string>& args,
                    const std::map<std::string, std::string>& env = {},
                    const std::vector<std::string>& before = {});
  ~Fleetrun();
  Fleetrun(const Fleetrun&) = delete;
  Fleetrun& operator=(const Fleetrun&) = delete;

  FleetrunResult wait();
  void signal(int number) const;
  pid_t pid() const { return pid_; }
  std::string read(const std::string& name) const;  // of a file in the folder
  // Waits until a file has this text; false after 10 s.
  bool says(const std::string& name, const std::string& text) const;

 private:
  TempDir folder_;
  pid_t pid_ = -1;
  double started_ = 0;
};

FleetrunResult run_fleetrun(const std::vector<std::string>& args,
                            const std::map<std::string, std::string>& env = {});

// What a shell command prints; it must end with 0, unless its exit code is asked for.
std::string output_of(const std::string& command, int* code = nullptr);

// Processes whose environment has this entry.
std::vector<pid_t> processes_with(const std::string& entry);
double now();

}  // namespace fleetx::testing
