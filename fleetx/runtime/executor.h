// Runs programs. The first run of a program with new feed shapes makes a plan; later runs reuse it.
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

#include "fleetx/runtime/planner.h"
#include "fleetx/runtime/profile.h"

namespace fleetx::runtime {

using Feeds = std::vector<std::pair<std::string, Tensor>>;

struct ExecutorOptions {
  bool check_finite = false;  // stop at the first op that produces NaN or Inf, and name it
  bool profile = false;       // collect time per op
  PlanOptions plan;
  // Defaults, changed by FLEETX_CHECK_FINITE, FLEETX_PROFILE, FLEETX_SKIP, FLEETX_DUMP.
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
  // fetched).
  Plan& plan(const ir::Program& program, Scope& scope, const Feeds& feeds = {},
             const ir::Names& fetch = {});
  void run(Plan& plan);

  // Time per op kind of all profiled runs.
  const Profile& profile() const { return profile_; }
  size_t plans() const { return entries_.size(); }

 private:
  struct Entry;
  Entry& entry(const ir::Program& program, Scope& scope, const Feeds& feeds,
               const ir::Names& fetch);

  ExecutorOptions options_;
  std::vector<std::unique_ptr<Entry>> entries_;
  Profile profile_;
};

}  // namespace fleetx::runtime
