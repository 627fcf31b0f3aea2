#include "tools/fleetrun_plan.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "fleetx/base/error.h"
#include "fleetx/base/job_env.h"
#include "fleetx/base/names.h"
#include "fleetx/launch/plan.h"

namespace fleetx::tools {
namespace {

// The list is one variable of the environment, which has at most 128 KiB.
constexpr int kMostWorkers = 4096;

struct Size {
  int hosts = 1, per_host = 1;
  int workers() const { return hosts * per_host; }
};

Size size_of(const launch::Options& o, const launch::Environment& environment) {
  check_arg(launch::mode_of(o).value_or(launch::Mode::kCollective) == launch::Mode::kCollective,
            "--plan describes collective jobs; this one has parameter servers");
  Size size;
  if (o.ips) size.hosts = static_cast<int>(split_list(*o.ips).size());
  if (o.nnodes) size.hosts = launch::whole_number("--nnodes", *o.nnodes, 1, kMostWorkers);
  size.per_host = o.nproc_per_node && !o.gpus
                      ? *o.nproc_per_node
                      : static_cast<int>(launch::slots_of(o, environment).size());
  check_arg(size.per_host >= 1, "--nproc_per_node is ", size.per_host, "; must be 1 or more");
  check_arg(size.workers() <= kMostWorkers, "--plan: the job has ", size.workers(),
            " workers; at most ", kMostWorkers,
            " can be described by a script (`fleetx plan "
            "--mesh` has no such limit)");
  return size;
}

void set_variable(const char* name, const std::string& value) {
  FLEETX_CHECK(setenv(name, value.c_str(), 1) == 0);
}

// Addresses that nobody connects to.
std::string endpoint_of(int worker, int per_host) {
  const int host = worker / per_host;
  return str("10.0.", host / 256, ".", host % 256, ":", 6170 + worker % per_host);
}

void set_environment(const Size& size, const PlanFlags& flags) {
  std::vector<std::string> endpoints;
  for (int w = 0; w < size.workers(); ++w) endpoints.push_back(endpoint_of(w, size.per_host));
  set_variable(job_var::kTrainerId, "0");
  set_variable(job_var::kTrainersNum, str(size.workers()));
  set_variable(job_var::kCurrentEndpoint, endpoints.front());
  set_variable(job_var::kTrainerEndpoints, join(endpoints, ","));
  set_variable(job_var::kLocalRank, "0");
  set_variable(job_var::kLocalSize, str(size.per_host));
  set_variable(job_var::kNodes, str(size.hosts));
  set_variable(job_var::kTrainingRole, "TRAINER");
  set_variable(job_var::kSelectedGpus, "0");
  set_variable("FLEETX_PLAN", "1");
  if (!flags.machines.empty())
    set_variable("FLEETX_MACHINE", std::filesystem::absolute(flags.machines).string());
  if (!flags.timeline.empty())
    set_variable("FLEETX_PLAN_TIMELINE", std::filesystem::absolute(flags.timeline).string());
}

}  // namespace

int describe_job(launch::Options options, const PlanFlags& flags) {
  const launch::Environment environment = whole_environment();
  check_arg(flags.machines.empty() || std::filesystem::exists(flags.machines), "--machines ",
            flags.machines, ": there is no such file; `fleetx calibrate` writes one");
  set_environment(size_of(options, environment), flags);
  std::vector<std::string> words;
  if (options.script.ends_with(".py")) {
    words.push_back(options.python.value_or(FLEETX_PYTHON));
    words.emplace_back("-u");
  }
  words.push_back(options.script);
  words.insert(words.end(), options.args.begin(), options.args.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  fail(Error::Kind::kInvalidArgument,
       str("cannot run ", words.front(), ": ", std::strerror(errno)));
}

}  // namespace fleetx::tools
