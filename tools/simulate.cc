// fleetx simulate: a long job on many machines that fail now and then.
#include <iostream>

#include "fleetx/base/threads.h"
#include "fleetx/predict/faults.h"
#include "tools/commands.h"
#include "tools/plan_request.h"
#include "tools/table.h"

namespace fleetx::tools {
namespace {

struct SimulateCommand {
  PlanRequest request;
  std::string machines;
  int workers = 1;
  int ranks_per_host = 0;
  double mtbf_hours = 0, interval = 0;
};

// One line for each interval: by simulation, and what the formula expects.
void print_intervals(const predict::FaultModel& model, double given, double steps_per_s) {
  const predict::Efficiency best = predict::best_interval(model);
  Table table({{"checkpoint every"},
               {"s", Table::Align::kRight},
               {"useful", Table::Align::kRight},
               {"expected", Table::Align::kRight},
               {"useful steps/h", Table::Align::kRight}});
  const auto line = [&](const std::string& name, double interval) {
    const double useful = predict::simulate_faults(model, interval).useful;
    table.add({name, decimal(interval, 1), decimal(100 * useful, 2) + " %",
               decimal(100 * predict::expected(model, interval).useful, 2) + " %",
               decimal(3600 * steps_per_s * useful, 1)});
  };
  if (given > 0) line("as given", given);
  line("best", best.interval_s);
  line("Young's rule", predict::young_interval(model));
  line("best / 4", best.interval_s / 4);
  line("best x 4", best.interval_s * 4);
  table.print(std::cout);
}

void simulate(SimulateCommand c) {
  predict::Machine machine = predict::Machine::load(c.machines);
  if (c.mtbf_hours > 0) machine.failures.mtbf_s = c.mtbf_hours * 3600;
  check_arg(machine.failures.mtbf_s > 0, c.machines,
            ": does not say how often hosts fail; add `failures: {host_mtbf_hours: 5000, "
            "checkpoint_s: 20, restart_s: 120}`");
  check_arg(machine.failures.checkpoint_s > 0, c.machines,
            ": 'failures.checkpoint_s' is 0: where checkpoints cost nothing, no interval is best");
  c.request.workers = c.workers;
  const PlannedRequest made = make_plan(c.request);
  const PredictedRequest all = predict_request(c.request, made, machine, c.ranks_per_host);
  const int per_host = all.ranks_per_host;
  std::cout << all.report(made, machine) << "\n";
  const predict::FaultModel model{.hosts = (c.workers + per_host - 1) / per_host,
                                  .failures = machine.failures};
  std::cout << model.hosts << " hosts: a failure every " << decimal(model.mtbf_s() / 3600, 2)
            << " h, " << decimal(machine.failures.checkpoint_s, 1) << " s for a checkpoint, "
            << decimal(machine.failures.restart_s, 1) << " s to restart\n\n";
  print_intervals(model, c.interval, 1 / all.kinds.front().seconds);
}

}  // namespace

void add_simulate(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "simulate", "How much of its time a long job is useful on machines that fail");
  auto c = std::make_shared<SimulateCommand>();
  add_options(*command, c->request);
  command->add_option("--machines", c->machines, "description of the machines (docs/plan.md)")
      ->required();
  command->add_option("--workers", c->workers, "of the job, each with a part of the batch")
      ->required()
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--ranks-per-host", c->ranks_per_host, "of the job (default: as they say)")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--mtbf-hours", c->mtbf_hours,
                   "mean time between failures of a host (default: as they say)")
      ->check(CLI::Range(1e-3, 1e9));
  command->add_option("--checkpoint-interval", c->interval, "seconds between two checkpoints")
      ->check(CLI::Range(1e-3, 1e9));
  command->footer(
      "Predicts a step as `fleetx plan --machines` does, then lets hosts fail at random (from a\n"
      "fixed seed) until 20,000 failures have come. All work since the last checkpoint is lost;\n"
      "'expected' is the formula of Daly (2006).\n\n"
      "Examples:\n"
      "  fleetx simulate bert-large --machines cluster.yaml --workers 1000\n"
      "  fleetx simulate resnet50 --batch 32 --machines cluster.yaml --workers 64 --mtbf-hours "
      "500\n");
  command->callback([c] { simulate(*c); });
}

}  // namespace fleetx::tools
