// A process that stands for a job that is not there: `fleetrun --plan` starts one worker with
// FLEETX_PLAN=1. It has the variables of worker 0 of that job, meets nobody, skips what it is asked
// to run until the first program that trains, prints that program's plan and predicted step, and
// throws JobDescribed: the script has no more to do.
//
//   int main() {
//     try {
//       return train();
//     } catch (const fleetx::fleet::JobDescribed& end) {
//       return end.exit_code();
//     } catch (const std::exception& e) { ... }
//   }
//
// In Python it is SystemExit, which `except Exception` lets pass. A C++ program without the handler
// ends by its own handler of std::exception, with that one's exit code.
#pragma once

#include <exception>
#include <map>

#include "fleetx/base/mesh.h"
#include "fleetx/fleet/distributed_strategy.h"
#include "fleetx/ir/program.h"

namespace fleetx::fleet {

// Not an Error: nothing went wrong that a program could handle and go on.
class JobDescribed final : public std::exception {
 public:
  explicit JobDescribed(int exit_code) : exit_code_(exit_code) {}
  // Of the process: 0, or 2 where the job could not be described; stderr has the reason.
  int exit_code() const { return exit_code_; }
  const char* what() const noexcept override {
    return "fleetrun --plan: the job is described, and nothing was run";
  }

 private:
  int exit_code_;
};

bool is_describing();
// From now on this process only describes.
void describe_instead_of_running();
// What the program that trains was made with, and the programs of the other stages of its pipeline,
// by rank.
void note_described(const Mesh& mesh, const DistributedStrategy& strategy,
                    std::map<int, ir::Program> other_stages = {});

}  // namespace fleetx::fleet
