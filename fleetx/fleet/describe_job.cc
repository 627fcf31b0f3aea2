#include "fleetx/fleet/describe_job.h"

#include <cstdlib>
#include <iostream>

#include "fleetx/base/env.h"
#include "fleetx/base/job_env.h"
#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/predict/report.h"
#include "fleetx/runtime/plan_hook.h"
#include "fleetx/runtime/planner.h"

namespace fleetx::fleet {
namespace {

struct Described {
  Mesh mesh;
  DistributedStrategy strategy;
};

Described& described() {
  static Described d;
  return d;
}

predict::Machine machine() {
  const auto path = env::get("FLEETX_MACHINE");
  return path ? predict::Machine::load(*path) : predict::Machine::guess();
}

// Nothing of this process is worth an orderly end: memory, threads of Python, exit handlers of
// scripts that wait for training.
[[noreturn]] void end_process(int code) {
  std::cout.flush();
  std::cerr.flush();
  std::_Exit(code);
}

void show(const ir::Program& program, const runtime::FeedTypes& feeds, const ir::Names& fetch) {
  const Described& d = described();
  runtime::PlanOptions options;
  options.mesh = d.mesh;
  const runtime::PlannedProgram plan = runtime::plan_program(program, feeds, fetch, options);
  const predict::Machine machine = fleet::machine();
  const predict::Setting setting{.machine = machine,
                                 .ranks_per_host = JobEnv::from_environment().local_world,
                                 .guarded_share = guarded_share(d.strategy)};
  const predict::Prediction p = predict::predict(plan, setting);
  std::cout << predict::report({{"worker", d.mesh.world(), p}}, d.mesh, machine,
                               predict::ranks_per_host(setting, d.mesh));
  if (const auto timeline = env::get("FLEETX_PLAN_TIMELINE")) p.timeline.save(*timeline);
}

void on_run(const ir::Program& program, const runtime::FeedTypes& feeds, const ir::Names& fetch) {
  if (program.training().empty()) {
    check_arg(fetch.empty(), "fleetrun --plan: the script asks for '",
              fetch.empty() ? "" : fetch[0],
              "' of a program that does not train, before its first training step; nothing is run "
              "here, so there is no such number");
    return;  // startup: values are not needed
  }
  try {
    show(program, feeds, fetch);
  } catch (const Error& e) {
    std::cerr << "fleetrun --plan: error: " << e.what() << "\n";
    end_process(2);
  }
  end_process(0);
}

}  // namespace

bool is_describing() { return env::flag("FLEETX_PLAN"); }

void describe_instead_of_running() { runtime::set_plan_hook(on_run); }

void note_described(const Mesh& mesh, const DistributedStrategy& strategy) {
  described() = {mesh, strategy};
}

}  // namespace fleetx::fleet
