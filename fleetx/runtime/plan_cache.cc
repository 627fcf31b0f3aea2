#include "fleetx/runtime/plan_cache.h"

#include <unistd.h>

#include <algorithm>

namespace fleetx::runtime {
namespace {

// Of the same key: what the old one fetches, the new one does too.
bool fetches_all_of(const Plan& plan, const Plan& old) {
  const std::vector<Fetch>& fetches = plan.planned().fetches;
  return std::ranges::all_of(old.planned().fetches, [&](const Fetch& f) {
    return std::ranges::count(fetches, f.name, &Fetch::name) >=
           std::ranges::count(old.planned().fetches, f.name, &Fetch::name);
  });
}

}  // namespace

size_t default_plan_cache_bytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<size_t>(sysconf(_SC_PAGE_SIZE)) / 10;
}

Plan& PlanCache::add(Key key, std::unique_ptr<Plan> plan) {
  const auto is_useless = [&](const Entry& old) {
    if (old.key.scope_id == key.scope_id && old.key.scope_generation != key.scope_generation)
      return true;
    if (old.key.program_id != key.program_id) return false;
    if (old.key.program_version != key.program_version) return true;
    return old.key.scope_id == key.scope_id && old.key.groups == key.groups &&
           old.key.feeds == key.feeds && fetches_all_of(*plan, *old.plan);
  };
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (is_useless(*it)) {
      bytes_ -= it->bytes;
      it = entries_.erase(it);
    } else {
      ++it;
    }
  }
  const size_t bytes = plan->own_bytes();
  entries_.push_front({std::move(key), std::move(plan), bytes});
  bytes_ += bytes;
  while (bytes_ > budget_ && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }
  return *entries_.front().plan;
}

}  // namespace fleetx::runtime
