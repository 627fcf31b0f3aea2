// fleetx plan: what the planner makes of a program, without running it.
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "fleetx/base/names.h"
#include "fleetx/base/threads.h"
#include "tools/commands.h"
#include "tools/plan_request.h"
#include "tools/program_file.h"
#include "tools/table.h"

namespace fleetx::tools {
namespace {

struct PlanCommand {
  PlanRequest request;
  std::string machines, timeline;
  int ranks_per_host = 0;
  double memory_limit = 0;  // MiB of a worker; 0: any
  bool json = false;
};

void print_job(const runtime::PlannedProgram& plan) {
  std::cout << "# rank " << plan.mesh.rank() << " of " << plan.mesh.world() << " (";
  for (const Mesh::Axis& axis : plan.mesh.axes())
    std::cout << (&axis == &plan.mesh.axes().front() ? "" : ", ") << axis.name << " "
              << plan.mesh.coordinate(axis.name) << " of " << axis.size;
  std::cout << ")\n";
}

// What a step takes and needs on these machines.
void print_prediction(const PlanCommand& c, const PlannedRequest& made,
                      const predict::Machine& machine) {
  const PredictedRequest all = predict_request(c.request, made, machine, c.ranks_per_host);
  const predict::Prediction& p = all.largest();
  if (!c.timeline.empty()) p.timeline.save(c.timeline);
  if (c.json) {
    const nlohmann::ordered_json line = {
        {"step_s", p.seconds},
        {"compute_s", p.time.compute_s},
        {"exposed_s", p.time.exposed_s},
        {"bubble_s", p.time.bubble_s},
        {"peak_mib", static_cast<double>(p.peak_bytes()) / (1 << 20)},
        {"process_mib", static_cast<double>(p.process_bytes) / (1 << 20)},
        {"host_mb", p.links.host_bytes / 1e6},
        {"network_mb", p.links.network_bytes / 1e6},
        {"workers", made.mesh.world()},
        {"ranks_per_host", all.ranks_per_host}};
    std::cout << line.dump() << "\n";
    return;
  }
  std::cout << all.report(made, machine);
  if (made.items > 0)
    std::cout << "\nall workers: " << decimal(made.items * made.parts() / p.seconds, 1) << " "
              << made.unit << "/s\n";
}

// An error, not only a line of the table: scripts ask for it.
void check_limit(const PlanCommand& c, const PlannedRequest& made) {
  const double process =
      static_cast<double>(made.process_bytes + made.plan.own_bytes()) / (1 << 20);
  const double needed = static_cast<double>(made.plan.peak_bytes()) / (1 << 20) + process;
  check_arg(c.memory_limit == 0 || needed <= c.memory_limit, "a worker needs ", decimal(needed, 1),
            " MiB (of which ", decimal(process, 1), " MiB are the process itself), ",
            decimal(needed - c.memory_limit, 1), " MiB more than the ", decimal(c.memory_limit, 1),
            " MiB that it has. What would help: sharding, recompute, amp, a smaller batch; "
            "`auto: true` in the strategy looks for what fits");
}

void plan(const PlanCommand& c) {
  check_arg(
      !c.machines.empty() || (c.timeline.empty() && c.ranks_per_host == 0),
      "--timeline and --ranks-per-host need --machines FILE, which `fleetx calibrate` writes");
  check_arg(!c.machines.empty() || !c.json, "--json is about --machines FILE, which is not there");
  std::optional<predict::Machine> machine;  // its mistakes come first
  if (!c.machines.empty()) machine = predict::Machine::load(c.machines);
  const PlannedRequest made = make_plan(c.request);
  check_limit(c, made);
  if (c.json) return print_prediction(c, made, *machine);
  std::cout << "# " << c.request.file << ": " << summary(made.program) << "\n# feeds:";
  for (const auto& [name, type] : made.plan.feeds) std::cout << " " << name << " " << type;
  std::cout << "; fetches: " << (made.fetch.empty() ? "none" : join(made.fetch, ", ")) << "; "
            << num_threads() << " threads\n";
  if (!made.mesh.axes().empty()) print_job(made.plan);
  std::cout << "\n";
  if (machine)
    print_prediction(c, made, *machine);
  else
    std::cout << made.plan.table();
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "plan", "How a program would run: kernels, layouts, memory; how fast on given machines");
  auto c = std::make_shared<PlanCommand>();
  add_options(*command, c->request);
  command->add_option("--machines", c->machines,
                      "description of the machines (docs/plan.md): predicts a step on them");
  command->add_option("--ranks-per-host", c->ranks_per_host, "of the job (default: as they say)")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--memory-limit-MB", c->memory_limit,
                   "memory of a worker in MiB; what needs more is an error")
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", c->json, "the prediction as one line of JSON instead of a table");
  command->add_option("--timeline", c->timeline,
                      "file for the predicted step, for ui.perfetto.dev");
  command->footer(
      "Each line is one step: the op, the layout of its first output (plain is row-major,\n"
      "0123:1x16 is blocked by 16 channels), where that lies in memory, its arithmetic and\n"
      "traffic in memory and on the wire, and the kernel that was chosen. Below stand what this\n"
      "rank sends to each group in a step, the peak memory, and the time each pass took. Nothing\n"
      "is run and no memory of the model is allocated: with --mesh the plan of any rank of a job\n"
      "is made here, however large. A built-in model then has the strategies of such a job.\n\n"
      "Examples:\n"
      "  fleetx plan model --batch 32\n"
      "  fleetx plan train.txt --batch 8 --fetch loss --skip layout\n"
      "  fleetx plan resnet50 --batch 16\n"
      "  fleetx plan resnet50 --batch 32 --mesh dp=64 --rank 63\n"
      "  fleetx plan bert-base --batch 2 --mesh dp=4 --strategy sharding.prototxt\n"
      "  fleetx plan bert-large --mesh dp=1024 --machines cluster.yaml --timeline step.json\n"
      "  fleetx plan bert.txt --shape words=8,128 --shape sentences=8,128\n");
  command->callback([c] { plan(*c); });
}

}  // namespace fleetx::tools
