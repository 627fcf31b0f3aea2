#include "fleetx/launch/fault_policy.h"

#include <algorithm>
#include <iterator>

#include "fleetx/base/error.h"

namespace fleetx::launch {

Reaction react(const Death& death) {
  if (!death.mode) return {};
  if (death.role == JobRole::kServer && death.kept_last)
    return {AfterDeath::kStopJob, "it kept what is left of another server that is dead"};
  const int most = death.max_restart.value_or(kDefaultRestarts);
  const std::string again = str("started again (", death.restarts + 1, " of ", most, ")");
  if (death.role == JobRole::kServer && death.has_copy) {
    const std::string_view why = "its copy takes its place; nothing is lost";
    if (death.restarts >= most || death.servers_ended)
      return {.action = AfterDeath::kGoOn, .why = std::string(why), .lost = false};
    return {.action = AfterDeath::kStartAgain,
            .why = str(why, "; ", again, " as the copy of that"),
            .lost = false};
  }
  const auto rule = std::ranges::find_if(kFaultRules, [&](const FaultRule& r) {
    return r.mode == *death.mode && r.role == death.role;
  });
  if (rule == std::end(kFaultRules) || rule->first == AfterDeath::kStopJob) return {};
  const std::string in_mode = str(" (", *death.mode, ")");
  if (rule->needs_snapshot && !death.has_snapshot)
    return {AfterDeath::kStopJob,
            "it has no snapshot to go on from; --snapshot_interval=SECONDS makes some"};
  if (death.role == JobRole::kWorker && death.servers_ended)
    return {rule->last, str("the servers have ended, so it cannot come back", in_mode)};
  if (death.restarts < most)
    return {rule->first, str(again, " while the others go on", in_mode,
                             rule->needs_snapshot ? "; it loads its last snapshot" : "")};
  const std::string used_up =
      most == 0 ? "it is not started again (--max_restart=0)"
                : str("it was started again ", most, most == 1 ? " time" : " times", " already");
  if (rule->last == AfterDeath::kStopJob) return {rule->last, used_up};
  return {rule->last, str(used_up, "; the others go on without it", in_mode)};
}

}  // namespace fleetx::launch
