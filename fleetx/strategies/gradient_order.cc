#include "fleetx/strategies/gradient_order.h"

#include <algorithm>
#include <map>

namespace fleetx::strategies {

void sort_by_time(ir::Rewriter& rw, std::vector<Gradient>& gradients) {
  std::map<std::string, int64_t> made;
  int64_t position = 0;
  for (auto op = rw.begin(); op != rw.end(); ++op, ++position)
    for (const ir::Names& names : op->outputs)
      for (const std::string& name : names) made[name] = position;
  std::stable_sort(gradients.begin(), gradients.end(),
                   [&](const auto& a, const auto& b) { return made.at(a.name) < made.at(b.name); });
}

}  // namespace fleetx::strategies
