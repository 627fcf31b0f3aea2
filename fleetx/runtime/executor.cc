#include "fleetx/runtime/executor.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <mutex>

#include "fleetx/base/cpu.h"
#include "fleetx/base/env.h"
#include "fleetx/base/job_env.h"
#include "fleetx/base/log.h"
#include "fleetx/base/threads.h"
#include "fleetx/comm/groups.h"
#include "fleetx/kernel/ticket.h"
#include "fleetx/runtime/bind.h"
#include "fleetx/runtime/check_fits.h"
#include "fleetx/runtime/plan_hook.h"
#include "fleetx/runtime/profile_session.h"
#include "fleetx/runtime/trace.h"

namespace fleetx::runtime {
namespace {

void announce_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    log::info("executor", describe_threads(), ", instruction set ", cpu::name_of(cpu::best_isa()));
  });
}

// Denormals are flushed while a plan runs; the caller's own floating-point settings come back
// afterwards.
class ComputeMode {
 public:
  ComputeMode() : saved_(_mm_getcsr()) {
    flush_denormals();
    tell_openmp();
  }
  ComputeMode(const ComputeMode&) = delete;
  ComputeMode& operator=(const ComputeMode&) = delete;
  ~ComputeMode() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
};

template <class T>
int64_t first_not_finite(const void* data, int64_t n) {
  using Wide = std::conditional_t<sizeof(T) == 2, float, T>;
  const T* values = static_cast<const T*>(data);
  for (int64_t i = 0; i < n; ++i)
    if (!std::isfinite(static_cast<double>(static_cast<Wide>(values[i])))) return i;
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
    if (value.desc.dtype == DType::kBF16) at = first_not_finite<BFloat16>(data, n);
    if (value.desc.dtype == DType::kF16) at = first_not_finite<Half>(data, n);
    check_arg(at < 0, step.description, "produced NaN or Inf in '", value.var, "' (",
              value.desc.dtype, value.desc.shape, ", first at element ", at, ")");
  }
}

double bytes_of(const Plan& plan, const std::vector<int>& values) {
  size_t bytes = 0;
  for (const int v : values) bytes += plan.values()[static_cast<size_t>(v)].desc.bytes();
  return static_cast<double>(bytes);
}

// "all_reduce fc_1.w_0@GRAD and 3 more"
std::string name_of_call(const Plan& plan, const Step& step) {
  const size_t kind = step.label.rfind(step.ticket == kNoTicket ? "" : "_wait");
  std::string name = step.label.substr(0, kind);
  if (!step.outputs.empty())
    name += " " + plan.values()[static_cast<size_t>(step.outputs.front())].var;
  if (step.outputs.size() > 1) name += str(" and ", step.outputs.size() - 1, " more");
  return name;
}

// Adds the call that a step has made or waited for to profile and trace.
void report_call(const Plan& plan, const Step& step, uint64_t start, uint64_t end,
                 Profile* profile) {
  const bool starts = step.label.ends_with("_start");
  const bool blocks = step.cost.communication.kind != ir::CommKind::kNone && !starts;
  if (step.ticket == kNoTicket && !blocks) return;
  const double waited = static_cast<double>(end - start) * 1e-9;
  Profile::CallRow call{name_of_call(plan, step)};
  call.bytes = bytes_of(plan, step.outputs);
  call.waited_seconds = call.seconds = waited;
  call.bytes_sent = step.wire_bytes;
  if (step.ticket != kNoTicket) {
    const auto* ticket = static_cast<const kernel::Ticket*>(plan.address(step.ticket));
    const comm::CallRecord& record = ticket->record;
    if (record.end_ns == 0) return;  // of a group of one
    call.seconds = static_cast<double>(record.end_ns - record.begin_ns) * 1e-9;
    call.bytes_sent = static_cast<double>(record.traffic.bytes_sent);
    if (trace::enabled())
      trace::add_call(call.name, static_cast<uint64_t>(record.begin_ns),
                      static_cast<uint64_t>(record.end_ns),
                      str(call.bytes / 1e6, " MB, ", call.bytes_sent / 1e6, " MB sent, ",
                          waited * 1e3, " ms waited"));
  }
  if (profile != nullptr) profile->add(call);
  if (profile_session::active()) profile_session::add(call);
}

struct StepWatcher final : Plan::Observer {
  StepWatcher(const ExecutorOptions& o, Profile& p) : options(o), profile(p) {}
  void after(const Plan& plan, const Step& step, size_t, uint64_t start, uint64_t end) override {
    const double seconds = static_cast<double>(end - start) * 1e-9;
    if (options.profile) profile.add(step, seconds);
    if (profile_session::active()) profile_session::add(step, seconds);
    if (trace::enabled())
      trace::add(step.label, ir::name_of(step.role).data(), start, end, step.description);
    report_call(plan, step, start, end, options.profile ? &profile : nullptr);
    if (options.check_finite) check_finite(plan, step);
  }
  const ExecutorOptions& options;
  Profile& profile;
};

}  // namespace

ExecutorOptions ExecutorOptions::from_env() {
  ExecutorOptions options;
  options.check_finite = env::flag("FLEETX_CHECK_FINITE");
  options.profile = env::flag("FLEETX_PROFILE");
  for (const std::string& name : split_list(env::get("FLEETX_SKIP").value_or("")))
    options.plan.skip.insert(name);
  if (const auto folder = env::get("FLEETX_DUMP"))
    options.plan.dump_dir = *folder + suffix_of_worker("/worker_");
  if (const auto megabytes = env::integer("FLEETX_PLAN_CACHE_MB")) {
    check_arg(*megabytes >= 0, "FLEETX_PLAN_CACHE_MB is ", *megabytes, "; must not be negative");
    options.plan_cache_bytes = static_cast<size_t>(*megabytes) << 20;
  }
  return options;
}

Executor::Executor(ExecutorOptions options)
    : options_(std::move(options)), plans_(options_.plan_cache_bytes) {
  announce_once();
}

Executor::~Executor() {
  if (options_.profile && env::flag("FLEETX_PROFILE") && !profile_.empty())
    std::cerr << profile_.table();
  trace::flush();
}

namespace {

PlanHook& plan_hook() {
  static PlanHook hook;
  return hook;
}

FeedTypes types_of(const Feeds& feeds) {
  FeedTypes types;
  for (const auto& [name, tensor] : feeds) {
    check_arg(tensor.defined(), "feed '", name, "' is an empty tensor");
    check_arg(tensor.layout().is_plain(), "feed '", name, "' must be row-major");
    types.emplace_back(name,
                       ir::TensorType{tensor.dtype(), tensor.shape(), ir::VarKind::kDense, -1});
  }
  return types;
}

}  // namespace

void set_plan_hook(PlanHook hook) { plan_hook() = std::move(hook); }

Plan& Executor::make_plan(const ir::Program& program, Scope& scope,
                          std::shared_ptr<const comm::Groups> groups, const Feeds& feeds,
                          const ir::Names& fetch) {
  FeedTypes types = types_of(feeds);
  PlanOptions options = options_.plan;
  options.groups = groups;
  options.scope = &scope;
  if (!options.dump_dir.empty()) {
    options.dump_dir += str("/plan_", plans_made_);
    std::filesystem::create_directories(options.dump_dir);
  }
  const ComputeMode mode;
  static const MemoryLimit memory = memory_limit();
  PlannedProgram planned = plan_program(program, types, fetch, options);
  check_fits(planned, memory);
  auto made = bind(std::move(planned), scope, {.groups = groups, .memory = memory_});
  ++plans_made_;
  log::debug("executor", "plan of ", made->steps().size(), " steps made in ",
             made->seconds_to_make(), " s");
  return plans_.add({.program_id = program.id(),
                     .program_version = program.version(),
                     .scope_id = scope.id(),
                     .scope_generation = scope.generation(),
                     .groups = std::move(groups),
                     .feeds = std::move(types)},
                    std::move(made));
}

Plan& Executor::plan(const ir::Program& program, Scope& scope, const Feeds& feeds,
                     const ir::Names& fetch) {
  const auto groups = options_.plan.groups ? options_.plan.groups : comm::process_groups();
  if (plan_hook()) {
    plan_hook()(program, types_of(feeds), fetch);
    static const ir::Program nothing;
    return make_plan(nothing, scope, groups, {}, {});
  }
  Plan* p = plans_.find(program, scope, groups.get(), fetch, [&](const FeedTypes& types) {
    return std::ranges::equal(feeds, types, [](const auto& feed, const auto& type) {
      return feed.first == type.first && feed.second.dtype() == type.second.dtype &&
             feed.second.shape() == type.second.shape;
    });
  });
  if (p == nullptr) p = &make_plan(program, scope, groups, feeds, fetch);
  for (size_t i = 0; i < feeds.size(); ++i) p->set_feed(static_cast<int>(i), feeds[i].second.raw());
  return *p;
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
