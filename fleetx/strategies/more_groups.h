// Of a strategy whose groups follow from its options, too.
#pragma once

#include <string>
#include <vector>

#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {

class MoreGroups {
 public:
  virtual ~MoreGroups() = default;
  // Beside those of its traits.
  virtual std::vector<std::string> more_groups(const StrategyContext& context) const = 0;
};

}  // namespace fleetx::strategies
