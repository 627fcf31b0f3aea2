// fleetrun: starts the processes of a training job, watches them and stops them.
#include <iostream>

#include "fleetx/base/error.h"
#include "fleetx/launch/job.h"
#include "tools/fleetrun_flags.h"
#include "tools/fleetrun_plan.h"
#include "tools/fleetrun_store.h"

namespace fleetx::tools {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kWrongUse = 2 };

int complain(const std::string& message, ExitCode code) {
  std::cerr << "fleetrun: error: " << message << "\n";
  return code;
}

int run(int argc, char** argv) {
  try {
    PlanFlags plan;
    const auto options = parse_fleetrun(argc, argv, plan);
    if (options && plan.plan) return describe_job(*options, plan);
    return options ? launch::run_job(*options, stores_of_comm()) : kDone;
  } catch (const Error& e) {
    return complain(e.what(), e.kind() == Error::Kind::kInvalidArgument ? kWrongUse : kFailed);
  } catch (const std::exception& e) {
    return complain(e.what(), kFailed);
  }
}

}  // namespace
}  // namespace fleetx::tools

int main(int argc, char** argv) { return fleetx::tools::run(argc, argv); }
