// Runs programs. The first run of a program with new feed shapes makes a plan; later runs reuse it,
// also those that fetch less. The plans of an executor share one arena.
//
//   runtime::Scope scope;
//   runtime::Executor exe;
//   exe.run(startup, scope);
//   auto out = exe.run(main, scope, {{"x", images}, {"y", labels}}, {"loss"});
//
// One thread at a time may use an Executor; it computes with as many threads as num_threads() says.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fleetx/runtime/plan.h"
#include "fleetx/runtime/plan_cache.h"
#include "fleetx/runtime/planner.h"
#include "fleetx/runtime/profile.h"

namespace fleetx::runtime {

using Feeds = std::vector<std::pair<std::string, Tensor>>;

struct ExecutorOptions {
  bool check_finite = false;  // stop at the first op that produces NaN or Inf, and name it
  bool profile = false;       // collect time per op
  PlanOptions plan = {};
  // What plans may take together; those not used for longest go first. The arena, as large as the
  // largest plan needs, is not in it.
  size_t plan_cache_bytes = default_plan_cache_bytes();
  // Defaults, changed by FLEETX_CHECK_FINITE, FLEETX_PROFILE, FLEETX_SKIP, FLEETX_DUMP,
  // FLEETX_PLAN_CACHE_MB.
  static ExecutorOptions from_env();
};

class Executor {
 public:
  explicit Executor(ExecutorOptions options = ExecutorOptions::from_env());
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor();

  // Row-major feeds are used where they are, without a copy. Results are row-major, in the order of
  // `fetch`.
  std::vector<Tensor> run(const ir::Program& program, Scope& scope, const Feeds& feeds = {},
                          const ir::Names& fetch = {});

  // The plan for these feeds, for callers that look at it or drive it themselves (set_feed, run,
  // fetched). It may end when another one is made.
  Plan& plan(const ir::Program& program, Scope& scope, const Feeds& feeds = {},
             const ir::Names& fetch = {});
  void run(Plan& plan);

  // Time per op kind of all profiled runs.
  const Profile& profile() const { return profile_; }
  size_t plans() const { return plans_.size(); }     // kept
  size_t plans_made() const { return plans_made_; }  // ever
  size_t plan_bytes() const { return plans_.bytes() + memory_->arena_bytes(); }

 private:
  Plan& make_plan(const ir::Program& program, Scope& scope,
                  std::shared_ptr<const comm::Groups> groups, const Feeds& feeds,
                  const ir::Names& fetch);

  ExecutorOptions options_;
  std::shared_ptr<PlanMemory> memory_ = std::make_shared<PlanMemory>();
  PlanCache plans_;
  size_t plans_made_ = 0;
  Profile profile_;
};

}  // namespace fleetx::runtime
