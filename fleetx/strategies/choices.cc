#include "fleetx/strategies/choices.h"

#include <algorithm>

namespace fleetx::strategies {
namespace {

std::vector<Choices>& registry() {
  static std::vector<Choices> all;
  return all;
}

}  // namespace

const std::vector<Choices>& all_choices() { return registry(); }

// Kept in order: files register in whatever order they were linked.
RegisterChoices::RegisterChoices(std::string strategy, Effect effect,
                                 std::vector<Choice> (*list)(const Mesh&), Matters matters) {
  const auto place = std::ranges::upper_bound(registry(), strategy, {}, &Choices::strategy);
  registry().insert(place, {std::move(strategy), effect, list, matters});
}

}  // namespace fleetx::strategies
