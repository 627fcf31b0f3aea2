// fleetx bench: how fast a built-in network trains, or answers, here.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <numeric>
#include <optional>

#include <nlohmann/json.hpp>

#include "fleetx/base/cpu.h"
#include "fleetx/base/process_memory.h"
#include "fleetx/base/threads.h"
#include "fleetx/fleet/fleet.h"
#include "fleetx/runtime/executor.h"
#include "tools/commands.h"
#include "tools/table.h"
#include "tools/workload.h"

namespace fleetx::tools {
namespace {

struct BenchCommand {
  std::string model;
  int64_t batch = 0;
  int threads = 0;
  int steps = 10;
  int warmup = 2;
  WorkloadStrategies with;
  bool test = false;
  bool json = false;
  bool profile = false;
};

struct Measured {
  std::vector<double> seconds;             // of each step, sorted
  std::optional<double> first_loss, loss;  // inference has none
  double flops = 0;
  size_t process_bytes = 0;  // before there was anything to train, and of kernels
  size_t plan_bytes = 0, peak_bytes = 0;
  runtime::Profile::CallRow calls;  // to other workers, of all steps

  double best() const { return seconds.front(); }
  double total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }
  double median() const {
    const size_t n = seconds.size();
    return n % 2 == 1 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2;
  }
};

// In every step the data is fed and the loss, or what inference computes, is fetched, as in a loop
// that trains or answers.
Measured measure(const Workload& w, const BenchCommand& c) {
  Measured m;
  m.process_bytes = resident_bytes();
  runtime::Scope scope;
  runtime::Executor().run(w.startup, scope);
  runtime::ExecutorOptions options = runtime::ExecutorOptions::from_env();
  runtime::Executor quiet(options);  // the profile is to show measured steps only
  options.profile |= c.profile;
  runtime::Executor exe(options);
  const ir::Names fetch = c.test ? w.outputs : ir::Names{w.loss};
  for (int step = 0; step < c.warmup + c.steps; ++step) {
    const bool counts = step >= c.warmup;
    const auto start = std::chrono::steady_clock::now();
    runtime::Plan& plan = exe.plan(w.main, scope, w.feeds, fetch);
    (counts ? exe : quiet).run(plan);
    if (!c.test) m.loss = plan.fetched(0).item<float>();
    if (step == 0) m.first_loss = m.loss, m.process_bytes += plan.planned().own_bytes();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (counts) m.seconds.push_back(took.count());
    m.flops = plan.flops();
    m.plan_bytes = plan.peak_bytes();
  }
  std::ranges::sort(m.seconds);
  for (const runtime::Profile::CallRow& call : exe.profile().calls()) {
    m.calls.seconds += call.seconds;
    m.calls.waited_seconds += call.waited_seconds;
    m.calls.bytes_sent += call.bytes_sent;
  }
  if (c.profile) std::cerr << exe.profile().table();
  m.peak_bytes = peak_resident_bytes();
  return m;
}

double mib(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void bench(const BenchCommand& c) {
  if (c.threads > 0) set_num_threads(c.threads);
  Workload w = make_workload(c.model, c.batch, c.with);
  if (c.test) make_inference(w);
  const Measured m = measure(w, c);
  const int workers = fleet::worker_num();
  const std::vector<double> peaks = fleet::util().all_gather(mib(m.peak_bytes));
  const std::vector<double> plans = fleet::util().all_gather(mib(m.plan_bytes + m.process_bytes));
  fleet::barrier_worker();  // nobody ends while others measure
  if (!fleet::is_first_worker()) return;
  w.items *= w.parts();
  if (c.json) {
    nlohmann::ordered_json line = {{"model", c.model},
                                   {"batch", w.batch},
                                   {"threads", num_threads()},
                                   {"workers", workers},
                                   {"best_s", m.best()},
                                   {"median_s", m.median()},
                                   {"total_s", m.total()},
                                   {"steps_per_s", 1 / m.best()},
                                   {"items_per_s", w.items / m.best()},
                                   {"gflops", m.flops * workers / m.best() / 1e9},
                                   {"peak_mib", mib(m.peak_bytes)},
                                   {"plan_mib", mib(m.plan_bytes)},
                                   {"process_mib", mib(m.process_bytes)},
                                   {"peaks_mib", peaks},
                                   {"plans_mib", plans},
                                   {"first_loss", nullptr},
                                   {"loss", nullptr},
                                   {"isa", cpu::name_of(cpu::capabilities().best)}};
    if (m.loss) line["first_loss"] = *m.first_loss, line["loss"] = *m.loss;
    if (c.profile) {
      line["calls_s"] = m.calls.seconds / c.steps;
      line["waited_s"] = m.calls.waited_seconds / c.steps;
      line["sent_mb"] = m.calls.bytes_sent / c.steps / 1e6;
    }
    std::cout << line.dump() << "\n";
    return;
  }
  std::cout << c.model << (c.test ? " inference" : "") << ", batch " << w.batch << ", "
            << num_threads() << " threads, " << workers << (workers == 1 ? " worker" : " workers")
            << ", best of " << c.steps << " steps\n"
            << "  step       " << decimal(m.best() * 1e3, 3) << " ms (median "
            << decimal(m.median() * 1e3, 3) << " ms)\n"
            << "  speed      " << decimal(1 / m.best(), 2) << " steps/s, "
            << decimal(w.items / m.best(), 1) << " " << w.unit << "/s, "
            << decimal(m.flops * workers / m.best() / 1e9, 1) << " GFLOP/s\n"
            << "  memory     " << decimal(mib(m.peak_bytes), 0) << " MiB in the process, "
            << decimal(mib(m.plan_bytes), 0) << " MiB by the plan and "
            << decimal(mib(m.process_bytes), 0) << " MiB for the process itself\n";
  if (m.loss) std::cout << "  loss       " << decimal(*m.loss, 4) << "\n";
}

std::string footer() {
  std::string text =
      "A step is forward, backward and update, on made-up data held in memory, in f32 (or --amp); "
      "with "
      "--test\n"
      "it is the forward part as used after training, up to the logits. Speed is that of the best\n"
      "step; gflops counts the arithmetic of the plan. With --json one line is printed with the\n"
      "fields model, batch, threads, workers, best_s, median_s, total_s (all measured steps),\n"
      "steps_per_s, items_per_s, gflops, peak_mib (whole process; memory that workers share is\n"
      "divided between them), plan_mib (what the plan says it needs), process_mib (before there\n"
      "was a plan, and its kernels), peaks_mib and plans_mib (of every worker, the latter with\n"
      "process_mib), first_loss and loss (null with --test) and isa; with --profile also calls_s,\n"
      "waited_s and sent_mb:\n"
      "seconds of calls to other workers, those in which this one had nothing else to do, and "
      "what\n"
      "went to other hosts, each in the mean of the steps.\n"
      "bench/run compares these figures with those of other frameworks.\n\n"
      "Models:\n";
  for (const WorkloadInfo& info : known_workloads())
    text += str("  ", info.name, std::string(12 - info.name.size(), ' '), info.description,
                " (default batch ", info.batch, ")\n");
  return text +
         "\nExamples:\n"
         "  fleetx bench mlp\n"
         "  fleetx bench resnet50 --batch 16 --threads 1 --steps 5 --json\n"
         "  fleetx bench bert-base --batch 8 --steps 3 --profile\n"
         "  fleetx bench resnet50 --amp bf16\n"
         "  fleetx bench mlp --strategy merge.prototxt    gradient_merge: true ...\n"
         "  fleetx bench resnet50 --test --batch 1\n"
         "  fleetrun --nproc_per_node=2 fleetx bench resnet50 --batch 16    two workers, 16 each\n";
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("bench", "How fast a built-in network trains or answers here");
  auto c = std::make_shared<BenchCommand>();
  const CLI::Range count(1, 1 << 24);
  command->add_option("MODEL", c->model, "one of the models below")->required();
  command->add_option("--batch", c->batch, "examples per step")->check(count);
  command
      ->add_option("--threads", c->threads, "compute threads (default: what this process may use)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--steps", c->steps, "steps that are measured")
      ->check(count)
      ->capture_default_str();
  command->add_option("--warmup", c->warmup, "steps before these")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command->add_option("--amp", c->with.amp, "values in 16 bits, as the strategy amp has them")
      ->check(CLI::IsMember({"bf16", "f16"}));
  command->add_flag("--recompute", c->with.recompute,
                    "backward computes again what it needs, from checkpoints that are chosen");
  command
      ->add_option("--strategy", c->with.file,
                   "file with a DistributedStrategy as text, as save_to_prototxt writes it")
      ->check(CLI::ExistingFile);
  command->add_flag("--momentum", c->with.momentum,
                    "momentum instead of the network's own optimizer");
  command->add_flag("--test", c->test, "inference instead of training");
  command->add_flag("--json", c->json, "one line of JSON instead of text");
  command->add_flag("--profile", c->profile, "also print time, GFLOP/s and GB/s per op, on stderr");
  command->footer(footer());
  command->callback([c] { bench(*c); });
}

}  // namespace fleetx::tools
