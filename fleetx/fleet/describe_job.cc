#include "fleetx/fleet/describe_job.h"

#include <iostream>
#include <mutex>
#include <optional>

#include "fleetx/base/env.h"
#include "fleetx/base/job_env.h"
#include "fleetx/base/process_memory.h"
#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/predict/report.h"
#include "fleetx/runtime/plan_hook.h"
#include "fleetx/runtime/planner.h"

namespace fleetx::fleet {
namespace {

struct Described {
  Mesh mesh;
  DistributedStrategy strategy;
  std::map<int, ir::Program> other_stages{};
  std::mutex mutex{};              // of the rest
  std::optional<int> exit_code{};  // it has been described
};

Described& described() {
  static Described d;
  return d;
}

predict::Machine machine() {
  const auto path = env::get("FLEETX_MACHINE");
  return path ? predict::Machine::load(*path) : predict::Machine::guess();
}

void show(const ir::Program& program, const runtime::FeedTypes& feeds, const ir::Names& fetch) {
  const Described& d = described();
  const auto plan_of = [&](const ir::Program& of, int rank) {
    runtime::PlanOptions options;
    options.mesh = Mesh(d.mesh.axes(), rank);
    return runtime::plan_program(of, feeds, fetch, options);
  };
  const size_t process = resident_bytes();
  std::vector<runtime::PlannedProgram> plans;
  plans.push_back(plan_of(program, d.mesh.rank()));
  for (const auto& [rank, other] : d.other_stages) plans.push_back(plan_of(other, rank));
  std::vector<const runtime::PlannedProgram*> stages;
  for (const runtime::PlannedProgram& plan : plans) stages.push_back(&plan);
  const predict::Machine machine = fleet::machine();
  const predict::Setting setting{.machine = machine,
                                 .ranks_per_host = JobEnv::from_environment().local_world,
                                 .guarded_share = guarded_share(d.strategy),
                                 .process_bytes = process};
  const std::vector<predict::Prediction> all = predict::predict_stages(stages, setting);
  std::vector<predict::RankKind> kinds;
  for (size_t i = 0; i < all.size(); ++i)
    kinds.push_back({all.size() > 1 ? str("stage ", i) : "worker",
                     d.mesh.world() / static_cast<int>(all.size()), all[i]});
  std::cout << predict::report(kinds, d.mesh, machine, predict::ranks_per_host(setting, d.mesh));
  if (const auto timeline = env::get("FLEETX_PLAN_TIMELINE")) all.front().timeline.save(*timeline);
}

void on_run(const ir::Program& program, const runtime::FeedTypes& feeds, const ir::Names& fetch) {
  if (program.training().empty()) {
    check_arg(fetch.empty(), "fleetrun --plan: the script asks for '",
              fetch.empty() ? "" : fetch[0],
              "' of a program that does not train, before its first training step; nothing is run "
              "here, so there is no such number");
    return;  // startup: values are not needed
  }
  // Threads of a training loop may come together, and a script may run on after the first stop.
  Described& d = described();
  const std::scoped_lock lock(d.mutex);
  if (!d.exit_code) {
    try {
      show(program, feeds, fetch);
      d.exit_code = 0;
    } catch (const Error& e) {
      std::cerr << "fleetrun --plan: error: " << e.what() << std::endl;
      d.exit_code = 2;
    }
    std::cout.flush();
  }
  throw JobDescribed(*d.exit_code);
}

}  // namespace

bool is_describing() { return env::flag("FLEETX_PLAN"); }

void describe_instead_of_running() { runtime::set_plan_hook(on_run); }

void note_described(const Mesh& mesh, const DistributedStrategy& strategy,
                    std::map<int, ir::Program> other_stages) {
  described().mesh = mesh;
  described().strategy = strategy;
  described().other_stages = std::move(other_stages);
}

}  // namespace fleetx::fleet
