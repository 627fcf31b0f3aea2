#include "fleetx/runtime/executor.h"

#include <immintrin.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <mutex>

#include "fleetx/base/cpu.h"
#include "fleetx/base/env.h"
#include "fleetx/base/job_env.h"
#include "fleetx/base/log.h"
#include "fleetx/base/threads.h"
#include "fleetx/runtime/trace.h"

namespace fleetx::runtime {
namespace {

void announce_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    log::info("executor", num_threads(), " compute thread", num_threads() == 1 ? "" : "s", " on ",
              physical_cores(), " physical core", physical_cores() == 1 ? "" : "s",
              ", instruction set ", cpu::name_of(cpu::best_isa()));
    const unsigned callers = _mm_getcsr();
    flush_denormals_everywhere();
    _mm_setcsr(callers);  // this thread flushes only while a plan runs, see ComputeMode
  });
}

// Denormals are flushed while a plan runs; the caller's own floating-point settings come back
// afterwards. OpenMP's thread count belongs to the calling thread, so it is set here too.
class ComputeMode {
 public:
  ComputeMode() : saved_(_mm_getcsr()) {
    flush_denormals();
    omp_set_num_threads(num_threads());
  }
  ComputeMode(const ComputeMode&) = delete;
  ComputeMode& operator=(const ComputeMode&) = delete;
  ~ComputeMode() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
};

template <class T>
int64_t first_not_finite(const void* data, int64_t n) {
  const T* values = static_cast<const T*>(data);
  for (int64_t i = 0; i < n; ++i)
    if (!std::isfinite(static_cast<double>(values[i]))) return i;
  return -1;
}

void check_finite(const Plan& plan, const Step& step) {
  for (const int v : step.outputs) {
    const Value& value = plan.values()[static_cast<size_t>(v)];
    const void* data = plan.address(v);
    int64_t n = value.desc.stored();
    if (value.desc.kind == ir::VarKind::kSparseRows) {
      const auto rows = kernel::SparseRows::at(const_cast<void*>(data), value.desc.rows);
      n = *rows.count * value.desc.shape.numel(1, value.desc.shape.rank());
      data = rows.values;
    }
    int64_t at = -1;
    if (value.desc.dtype == DType::kF32) at = first_not_finite<float>(data, n);
    if (value.desc.dtype == DType::kF64) at = first_not_finite<double>(data, n);
    check_arg(at < 0, step.description, "produced NaN or Inf in '", value.var, "' (",
              value.desc.dtype, value.desc.shape, ", first at element ", at, ")");
  }
}

struct StepWatcher final : Plan::Observer {
  StepWatcher(const ExecutorOptions& o, Profile& p) : options(o), profile(p) {}
  void after(const Plan& plan, const Step& step, size_t, uint64_t start, uint64_t end) override {
    if (options.profile) profile.add(step, static_cast<double>(end - start) * 1e-9);
    if (trace::enabled())
      trace::add(step.label, ir::name_of(step.role).data(), start, end, step.description);
    if (options.check_finite) check_finite(plan, step);
  }
  const ExecutorOptions& options;
  Profile& profile;
};

}  // namespace

struct Executor::Entry {
  uint64_t program_id, program_version, scope_id, scope_generation;
  FeedTypes feeds;
  ir::Names fetch;
  std::unique_ptr<Plan> plan;

  bool matches(const ir::Program& program, const Scope& scope, const Feeds& given,
               const ir::Names& wanted) const {
    if (program.id() != program_id || program.version() != program_version ||
        scope.id() != scope_id || scope.generation() != scope_generation ||
        given.size() != feeds.size() || wanted != fetch)
      return false;
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i].first != feeds[i].first || given[i].second.dtype() != feeds[i].second.dtype ||
          given[i].second.shape() != feeds[i].second.shape)
        return false;
    return true;
  }
};

ExecutorOptions ExecutorOptions::from_env() {
  ExecutorOptions options;
  options.check_finite = env::flag("FLEETX_CHECK_FINITE");
  options.profile = env::flag("FLEETX_PROFILE");
  for (const std::string& name : split_list(env::get("FLEETX_SKIP").value_or("")))
    options.plan.skip.insert(name);
  if (const auto folder = env::get("FLEETX_DUMP"))
    options.plan.dump_dir = *folder + suffix_of_worker("/worker_");
  return options;
}

Executor::Executor(ExecutorOptions options) : options_(std::move(options)) { announce_once(); }

Executor::~Executor() {
  if (options_.profile && env::flag("FLEETX_PROFILE") && !profile_.empty())
    std::cerr << profile_.table();
  trace::flush();
}

Executor::Entry& Executor::entry(const ir::Program& program, Scope& scope, const Feeds& feeds,
                                 const ir::Names& fetch) {
  for (const auto& entry : entries_)
    if (entry->matches(program, scope, feeds, fetch)) return *entry;

  auto made = std::make_unique<Entry>();
  for (const auto& [name, tensor] : feeds) {
    check_arg(tensor.defined(), "feed '", name, "' is an empty tensor");
    check_arg(tensor.layout().is_plain(), "feed '", name, "' must be row-major");
    made->feeds.emplace_back(
        name, ir::TensorType{tensor.dtype(), tensor.shape(), ir::VarKind::kDense, -1});
  }
  PlanOptions plan_options = options_.plan;
  if (!plan_options.dump_dir.empty()) {
    plan_options.dump_dir += str("/plan_", entries_.size());
    std::filesystem::create_directories(plan_options.dump_dir);
  }
  const ComputeMode mode;
  made->plan = make_plan(program, scope, made->feeds, fetch, plan_options);
  made->program_id = program.id();
  made->program_version = program.version();
  made->scope_id = scope.id();
  made->scope_generation = scope.generation();
  made->fetch = fetch;
  // Plans of an older state of this scope or program can never run again.
  std::erase_if(entries_, [&](const auto& old) {
    return (old->scope_id == scope.id() && old->scope_generation != scope.generation()) ||
           (old->program_id == program.id() && old->program_version != program.version());
  });
  entries_.push_back(std::move(made));
  log::debug("executor", "plan of ", entries_.back()->plan->steps().size(), " steps made in ",
             entries_.back()->plan->seconds_to_make(), " s");
  return *entries_.back();
}

Plan& Executor::plan(const ir::Program& program, Scope& scope, const Feeds& feeds,
                     const ir::Names& fetch) {
  Entry& e = entry(program, scope, feeds, fetch);
  for (size_t i = 0; i < feeds.size(); ++i)
    e.plan->set_feed(static_cast<int>(i), feeds[i].second.raw());
  return *e.plan;
}

void Executor::run(Plan& plan) {
  const ComputeMode mode;
  if (!options_.profile && !options_.check_finite && !trace::enabled()) {
    plan.run();
    return;
  }
  StepWatcher watcher(options_, profile_);
  plan.run(watcher);
}

std::vector<Tensor> Executor::run(const ir::Program& program, Scope& scope, const Feeds& feeds,
                                  const ir::Names& fetch) {
  Plan& p = plan(program, scope, feeds, fetch);
  run(p);
  std::vector<Tensor> out;
  out.reserve(fetch.size());
  for (size_t i = 0; i < fetch.size(); ++i) out.push_back(p.fetched(i));
  return out;
}

}  // namespace fleetx::runtime
