// Fuzz target: what a user or a scheduler writes about a job: host lists, addresses, and the
// environment a process finds itself in. The first line goes to the parsers of lists, the others
// are variables, NAME=value.
#include <cstddef>
#include <cstdint>
#include <sstream>

#include "fleetx/base/error.h"
#include "fleetx/base/job_env.h"
#include "fleetx/launch/plan.h"

namespace {

template <class Fn>
void refuse_or_take(const Fn& fn) {
  try {
    fn();
  } catch (const fleetx::Error& e) {
    if (e.kind() != fleetx::Error::Kind::kInvalidArgument) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fleetx;
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  std::string list;
  std::getline(lines, list);
  launch::Environment environment;
  for (std::string line; std::getline(lines, line);)
    if (const size_t equal = line.find('='); equal != std::string::npos)
      environment[line.substr(0, equal)] = line.substr(equal + 1);
  const auto nobody = [](const std::string&) -> std::optional<std::string> { return std::nullopt; };
  const launch::Host host{
      "n1", {"127.0.0.1", "10.0.0.1"}, {{0, {0}}, {1, {1}}}, nobody, [](const launch::Endpoint&) {
        return std::string("10.0.0.1");
      }};

  refuse_or_take([&] { expand_host_list(list); });
  refuse_or_take([&] {
    JobEnv::from(
        [&](std::string_view name) { return launch::find(environment, std::string(name)); });
  });
  launch::Options collective{.gpus = list}, machines{.ips = list},
      servers{.servers = list, .workers = list};
  for (launch::Options* options : {&collective, &machines, &servers})
    refuse_or_take([&] {
      launch::take_defaults_from(environment, *options);
      const launch::JobPlan plan = launch::make_plan(*options, environment, host);
      for (const launch::Process& process : plan.processes)
        launch::merged_environment(environment, plan, process, {});
    });
  return 0;
}
