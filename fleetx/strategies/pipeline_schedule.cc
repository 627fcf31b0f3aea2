#include "fleetx/strategies/pipeline_schedule.h"

#include <algorithm>

namespace fleetx::strategies {

std::optional<Schedule> schedule_from_name(std::string_view name) {
  if (name == "F-then-B") return Schedule::kForwardThenBackward;
  if (name == "1F1B") return Schedule::kOneForwardOneBackward;
  return std::nullopt;
}

std::vector<Slot> slots_of(Schedule schedule, const StageOf& of) {
  const int all = of.micro_batches;
  const int first =
      schedule == Schedule::kForwardThenBackward ? all : std::min(all, of.stages - of.stage - 1);
  std::vector<Slot> slots;
  for (int i = 0; i < first; ++i) slots.push_back({true, i});
  for (int i = first; i < all; ++i) {
    slots.push_back({true, i});
    slots.push_back({false, i - first});
  }
  for (int i = all - first; i < all; ++i) slots.push_back({false, i});
  return slots;
}

}  // namespace fleetx::strategies
