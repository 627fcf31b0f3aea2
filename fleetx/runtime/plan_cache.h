// The plans of an executor, most recently used first. A plan serves every request for its program,
// scope, groups and feed shapes that fetches nothing beyond what it fetches. Plans that were not
// used for longest are dropped when all together need more than the budget; the newest always
// stays. Not thread-safe.
#pragma once

#include <list>
#include <memory>

#include "fleetx/runtime/plan.h"
#include "fleetx/runtime/scope.h"

namespace fleetx::runtime {

// A tenth of this machine's memory.
size_t default_plan_cache_bytes();

class PlanCache {
 public:
  explicit PlanCache(size_t budget) : budget_(budget) {}

  // What a plan was made for. All that is compared at every run is cheap to compare.
  struct Key {
    uint64_t program_id = 0, program_version = 0, scope_id = 0, scope_generation = 0;
    std::shared_ptr<const comm::Groups> groups;
    FeedTypes feeds;
  };

  // The plan that serves the request, with the fetches selected; null: there is none.
  // same_feeds(types): whether the feeds at hand are of these types.
  template <class SameFeeds>
  Plan* find(const ir::Program& program, const Scope& scope, const comm::Groups* groups,
             const ir::Names& fetch, const SameFeeds& same_feeds) {
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (!is_for(it->key, program, scope, groups) || !same_feeds(it->key.feeds) ||
          !it->plan->select_fetches(fetch))
        continue;
      if (it != entries_.begin()) entries_.splice(entries_.begin(), entries_, it);
      return it->plan.get();
    }
    return nullptr;
  }

  // Drops what the new plan makes useless (plans of an older state of its program or scope, plans
  // for the same feeds that fetch less), then what is beyond the budget.
  Plan& add(Key key, std::unique_ptr<Plan> plan);

  size_t size() const { return entries_.size(); }
  size_t bytes() const { return bytes_; }  // without the memory that plans share

 private:
  struct Entry {
    Key key;
    std::unique_ptr<Plan> plan;
    size_t bytes = 0;
  };

  static bool is_for(const Key& key, const ir::Program& program, const Scope& scope,
                     const comm::Groups* groups) {
    return key.program_id == program.id() && key.program_version == program.version() &&
           key.scope_id == scope.id() && key.scope_generation == scope.generation() &&
           key.groups.get() == groups;
  }

  size_t budget_;
  size_t bytes_ = 0;
  std::list<Entry> entries_;
};

}  // namespace fleetx::runtime
