// fleetx calibrate: measures this machine and writes the description that predictions are made
// from.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <iostream>
#include <thread>

#include "fleetx/base/cpu.h"
#include "fleetx/base/file.h"
#include "fleetx/base/threads.h"
#include "fleetx/comm/communicator.h"
#include "fleetx/predict/samples.h"
#include "fleetx/runtime/executor.h"
#include "tools/commands.h"
#include "tools/table.h"
#include "tools/workload.h"

namespace fleetx::tools {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Ranks that are measured at once, for the memory that each needs.
constexpr int kMostRanks = 8;
// A median of fewer is left to chance; more than enough tell no more.
constexpr int kLeastSteps = 3, kEnoughSteps = 5;
constexpr double kEnoughSeconds = 1.5;
// A step of one core, of one of all cores: it has less to share the work with.
constexpr double kSlower = 1.6;

struct CalibrateCommand {
  std::string file = "machine.yaml";
  // The large ones last: they have the time that the others leave.
  std::vector<std::string> models = {"mlp:64",          "wide-deep:512:merge", "resnet50:4",
                                     "resnet50:4:bf16", "bert-short:4:merge",  "bert-short:4:bf16",
                                     "vgg16:2",         "vgg16:2:bf16"};
  double seconds = 100;
};

// "resnet50:4:bf16"
struct Subject {
  std::string model;
  int64_t batch = 0;
  std::string amp;
  bool merge = false;

  fleet::DistributedStrategy strategy() const {
    fleet::DistributedStrategy s;
    s.amp = !amp.empty();
    if (amp == "f16") s.amp_configs.dtype = "float16";
    s.gradient_merge = merge;
    if (merge) s.gradient_merge_configs.k_steps = 2;
    return s;
  }
};

Subject parse_subject(const std::string& text) {
  Subject s;
  size_t end = text.find(':');
  s.model = text.substr(0, end);
  for (int part = 1; end != std::string::npos; ++part) {
    const size_t begin = end + 1;
    end = text.find(':', begin);
    const std::string word = text.substr(begin, end == std::string::npos ? end : end - begin);
    if (part == 1) {
      const bool digits = !word.empty() && word.size() < 7 &&
                          word.find_first_not_of("0123456789") == std::string::npos;
      check_arg(digits && std::stol(word) > 0, "--models '", text,
                "': write MODEL:BATCH or MODEL:BATCH:bf16, resnet50:4 for example");
      s.batch = std::stol(word);
      continue;
    }
    check_arg(word == "bf16" || word == "f16" || word == "merge", "--models '", text,
              "': the type is bf16 or f16; merge trains with gradient_merge");
    if (word == "merge")
      s.merge = true;
    else
      s.amp = word;
  }
  return s;
}

// This thread has the core that a process has which fleetrun starts for each core: the calls of
// its rank run there, too, on a thread that it starts.
void stay_on_core(int rank) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || rank-- > 0) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    sched_setaffinity(0, sizeof own, &own);
    return;
  }
}

// run(rank) by a thread for each rank, each with a core of its own.
template <class Run>
void on_cores(int ranks, const Run& run) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&run, rank] {
      stay_on_core(rank);
      run(rank);
    });
  for (std::thread& thread : threads) thread.join();
}

// CPU time of this thread, in seconds.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Where one thread does all the work, what other programs take of its core does not count.
class Watcher final : public runtime::Plan::Observer {
 public:
  explicit Watcher(predict::Samples& samples) : samples_(samples) {}
  void after(const runtime::Plan& plan, const runtime::Step& step, size_t, uint64_t start,
             uint64_t end) override {
    double seconds = static_cast<double>(end - start) * 1e-9;
    if (num_threads() == 1) seconds = std::min(seconds, thread_seconds() - before_);
    samples_.add(plan.planned(), step, seconds);
    before_ = thread_seconds();
  }

 private:
  predict::Samples& samples_;
  double before_ = thread_seconds();  // when the step began, with all that is between two
};

// Ops of one network: by one rank with all cores, and by one rank for each core at once, which
// share caches and the way to memory.
class Trainer {
 public:
  explicit Trainer(const Subject& subject)
      : name_(subject.model + (subject.amp.empty() ? "" : " " + subject.amp)),
        work_(make_workload(subject.model, subject.batch, {.chosen = subject.strategy()})),
        times_(subject.merge ? 2 : 1) {}

  void measure(double seconds, int ranks, predict::Samples& samples) {
    const auto start = Clock::now();
    std::barrier<> all_ready(ranks);
    std::atomic<bool> over = false;
    int steps = 0;
    const auto train = [&](int rank) {
      const ir::Program main = work_.main, startup = work_.startup;
      runtime::Scope scope;
      runtime::Executor exe;
      exe.run(startup, scope);
      runtime::Plan& plan = exe.plan(main, scope, work_.feeds, {work_.loss});
      exe.run(plan);  // touches memory: does not count
      all_ready.arrive_and_wait();
      Watcher watcher(samples);
      while (rank > 0 && !over) exe.run(plan);
      const auto first = Clock::now();
      while (rank == 0 && !over) {
        plan.run(watcher);
        ++steps;
        const bool enough = steps >= times_ * kEnoughSteps && seconds_since(first) > kEnoughSeconds;
        over = enough || (steps >= times_ * kLeastSteps && seconds_since(start) > seconds);
      }
    };
    if (ranks > 1)
      on_cores(ranks, train);
    else
      train(0);
    std::cerr << "  " << name_ << ", batch " << work_.batch << ", " << num_threads()
              << (num_threads() == 1 ? " core" : " cores") << ": " << steps << " steps in "
              << decimal(seconds_since(start), 1) << " s\n";
  }

 private:
  std::string name_;
  Workload work_;
  int times_;  // so many steps do what one does otherwise
};

// The rates that the ops reach which have most to do: those of files written by hand.
void set_rates(predict::Machine& m) {
  double f32_work = 0, f32_time = 0, half_work = 0, half_time = 0, least = 1;
  for (const predict::OpSample& s : m.ops) {
    if (s.cores != predict::kAllCores) continue;
    least = std::min(least, s.seconds);
    if (s.flops < 1e7 || s.flops < 8 * s.bytes) continue;  // bound by memory, or small
    (s.dtype == f32 ? f32_work : half_work) += s.flops;
    (s.dtype == f32 ? f32_time : half_time) += s.seconds;
  }
  if (f32_time > 0) m.f32_flops = f32_work / f32_time;
  m.half_flops = half_time > 0 ? half_work / half_time : m.f32_flops;
  m.op_s = least;
}

double copy_rate() {
  constexpr size_t kBytes = size_t{128} << 20;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    parallel_for(static_cast<int64_t>(kBytes), 1 << 20, [&](int64_t begin, int64_t end) {
      std::memcpy(&to[static_cast<size_t>(begin)], &from[static_cast<size_t>(begin)],
                  static_cast<size_t>(end - begin));
    });
    best = std::max(best, 2.0 * kBytes / seconds_since(start));  // read and written
  }
  return best;
}

// Ranks as threads, each with a core, as processes of a host have them: they use the same shared
// memory and algorithms, and calls run beside the computation of their rank.
class Ranks {
 public:
  explicit Ranks(int count) : ranks_(comm::make_local(count)) {}

  int count() const { return static_cast<int>(ranks_.size()); }
  // The mean of `calls` all-reduces of vectors of this size, each of which is waited for.
  double seconds(size_t bytes, int calls) {
    double taken = 0;
    on_cores(count(), [&](int rank) {
      const std::shared_ptr<void> memory = allocate(rank, bytes);
      start(rank, memory.get(), bytes).wait();
      const auto begin = Clock::now();
      for (int i = 0; i < calls; ++i) start(rank, memory.get(), bytes).wait();
      if (rank == 0) taken = seconds_since(begin) / calls;
    });
    return taken;
  }

  // How much of its speed the computation of a rank keeps while its calls are under way, which need
  // its core, too: the median of several, as each is a small difference of times.
  double overlap() {
    constexpr size_t kBytes = 8 << 20;
    constexpr int kCalls = 20, kTimes = 5;
    const Workload w = make_workload("sgemm", 256);
    std::barrier<> together(count());
    std::vector<double> kept;
    int steps = 0;
    on_cores(count(), [&](int rank) {
      const ir::Program main = w.main, startup = w.startup;
      runtime::Scope scope;
      runtime::Executor exe;
      exe.run(startup, scope);
      runtime::Plan& plan = exe.plan(main, scope, w.feeds, {w.loss});
      exe.run(plan);
      const std::shared_ptr<void> memory = allocate(rank, kBytes);
      start(rank, memory.get(), kBytes).wait();
      const auto timed = [&](int calls, int runs) {
        together.arrive_and_wait();
        const auto begin = Clock::now();
        comm::Work last;
        for (int i = 0; i < calls; ++i) last = start(rank, memory.get(), kBytes);
        for (int i = 0; i < runs; ++i) exe.run(plan);
        last.wait();
        together.arrive_and_wait();
        return seconds_since(begin);
      };
      const double one = timed(0, 10) / 10, calls = timed(kCalls, 0);
      if (rank == 0) steps = 1 + static_cast<int>(3 * calls / one);
      together.arrive_and_wait();
      for (int time = 0; time < kTimes; ++time) {
        const double alone = timed(0, steps), call = timed(kCalls, 0);
        const double both = timed(kCalls, steps);
        if (rank == 0) kept.push_back(1 - (both - alone) / call);
      }
    });
    std::ranges::nth_element(kept, kept.begin() + kTimes / 2);
    std::cerr << "  calls take " << decimal(100 * (1 - kept[kTimes / 2]), 0)
              << " % of their time from computation beside them\n";
    return std::clamp(kept[kTimes / 2], 0.05, 1.0);
  }

 private:
  std::shared_ptr<void> allocate(int rank, size_t bytes) {
    std::shared_ptr<void> memory = ranks_[static_cast<size_t>(rank)]->allocate(bytes);
    std::memset(memory.get(), 0, bytes);
    return memory;
  }
  comm::Work start(int rank, void* data, size_t bytes) {
    return ranks_[static_cast<size_t>(rank)]->start(comm::Call::all_reduce(
        data, static_cast<int64_t>(bytes / sizeof(float)), f32, comm::ReduceOp::kSum));
  }

  std::vector<std::unique_ptr<comm::Communicator>> ranks_;
};

void measure_calls(Ranks& ranks, predict::Link& link) {
  const ir::Communication unit{ir::CommKind::kAllReduce, "dp", 1};
  const double rounds = 2 * std::ceil(std::log2(ranks.count()));
  link.latency_s = ranks.seconds(sizeof(float), 2000) / rounds;
  link.rates.clear();
  for (const auto& [bytes, calls] : std::vector<std::pair<size_t, int>>{
           {4 << 10, 1000}, {64 << 10, 500}, {1 << 20, 100}, {8 << 20, 20}, {32 << 20, 8}}) {
    const double flowing = std::max(ranks.seconds(bytes, calls) - rounds * link.latency_s, 1e-7);
    const double moved = ir::wire_bytes(unit, ranks.count()) * static_cast<double>(bytes);
    link.rates.push_back({static_cast<double>(bytes), moved * ranks.count() / flowing});
  }
  link.bytes_per_second = link.rates.back().bytes_per_second;
}

// Ops of all networks, in the seconds that there are.
std::vector<predict::OpSample> measure_ops(const std::vector<Subject>& subjects, double seconds) {
  const auto start = Clock::now();
  const int cores = num_threads();
  predict::Samples by_all, by_one(1);
  // Those of the second kind take longer in the same proportion.
  const auto kinds = static_cast<double>(cores > 1 ? 1 + kSlower : 1);
  double left_parts = kinds * static_cast<double>(subjects.size());
  for (const Subject& subject : subjects) {
    const double left = seconds - seconds_since(start);
    if (&subject != &subjects.front() && left <= 0) {
      std::cerr << "  " << subject.model << " " << subject.amp
                << ": left out, the time is over; is the machine busy? (--seconds)\n";
      continue;
    }
    Trainer trainer(subject);
    trainer.measure(left / left_parts, 1, by_all);
    if (cores > 1) {
      set_num_threads(1);
      trainer.measure(left / left_parts * kSlower, std::min(cores, kMostRanks), by_one);
      set_num_threads(cores);
    }
    left_parts -= kinds;
  }
  std::vector<predict::OpSample> ops = by_all.take();
  for (predict::OpSample& sample : by_one.take()) ops.push_back(std::move(sample));
  return ops;
}

void calibrate(const CalibrateCommand& c) {
  const auto start = Clock::now();
  std::vector<Subject> subjects;
  for (const std::string& text : c.models) subjects.push_back(parse_subject(text));
  for (const Subject& s : subjects)
    check_arg(is_workload(s.model), "--models '", s.model,
              "': there is no such model; `fleetx bench --help` lists them");
  predict::Machine m = predict::Machine::guess();
  m.name = str(cpu::capabilities().model, ", measured");
  std::cerr << "links and memory\n";
  m.memory_rate = copy_rate();
  Ranks ranks(std::clamp(m.cores, 2, 8));
  measure_calls(ranks, m.host);
  set_num_threads(1);
  m.host.overlap = ranks.overlap();
  set_num_threads(m.cores);
  std::cerr << "ops\n";
  m.ops = measure_ops(subjects, c.seconds - seconds_since(start));
  set_rates(m);
  write_file(c.file,
             "# Written by `fleetx calibrate`. The network is a guess: put in what yours has.\n" +
                 m.to_text());
  std::cout << "wrote " << c.file << ": " << m.cores << " cores, " << decimal(m.f32_flops / 1e9, 1)
            << " GFLOP/s (f32), " << decimal(m.half_flops / 1e9, 1) << " GFLOP/s (halves), memory "
            << decimal(m.memory_rate / 1e9, 1) << " GB/s, ranks of the host "
            << decimal(m.host.bytes_per_second / 1e9, 2) << " GB/s and "
            << decimal(m.host.latency_s * 1e6, 1) << " us, " << m.ops.size()
            << " classes of ops, in " << decimal(seconds_since(start), 1) << " s\n";
}

}  // namespace

void add_calibrate(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measures this machine for `fleetx plan` and `strategy.auto`");
  auto c = std::make_shared<CalibrateCommand>();
  command->add_option("FILE", c->file, "the description to write")->capture_default_str();
  command
      ->add_option("--models", c->models,
                   "whose ops are timed: MODEL:BATCH, MODEL:BATCH:bf16 or MODEL:BATCH:merge (with "
                   "gradient_merge), with commas between")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--seconds", c->seconds, "that it may take, about")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  command->footer(
      "Times every op of some models by kind and class of shape, copies in memory, all-reduces of\n"
      "4 KB to 32 MB between ranks of this host, and how much computation suffers from them. All\n"
      "cores must be idle meanwhile. docs/plan.md describes the file, which can also be written "
      "by\n"
      "hand.\n\n"
      "Examples:\n"
      "  fleetx calibrate                       machine.yaml, in less than two minutes\n"
      "  fleetx calibrate --models mlp:64 --seconds 5 quick.yaml\n");
  command->callback([c] { calibrate(*c); });
}

}  // namespace fleetx::tools
