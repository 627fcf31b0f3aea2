#include "fleetx/strategies/owners.h"

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/ir/infer.h"
#include "fleetx/ir/rewriter.h"

namespace fleetx::strategies {

Owners::Owners(const ir::Program& main, const std::vector<ir::Training::Parameter>& parameters,
               Among among)
    : among_(std::move(among)), loads_(static_cast<size_t>(among_.ranks)) {
  std::vector<std::pair<double, std::string>> by_size;
  for (const ir::Training::Parameter& p : parameters)
    by_size.emplace_back(ir::bytes_of(main.var(p.name).type), p.name);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [bytes, name] : by_size) {
    const auto least = std::min_element(loads_.begin(), loads_.end());
    *least += bytes;
    owners_.emplace(name, static_cast<int>(least - loads_.begin()));
  }
}

int Owners::of(std::string_view parameter) const {
  const auto it = owners_.find(parameter);
  FLEETX_CHECK(it != owners_.end(), "nobody owns '", parameter, "'");
  return it->second;
}

void place_with_owner(Programs& programs, const std::string& state, const std::string& group,
                      int owner) {
  for (ir::Program* program : {&programs.main, &programs.startup})
    if (program->find(state) != nullptr)
      ir::Rewriter(*program).edit_var(state).placement = ir::Placement::owned(group, owner);
}

}  // namespace fleetx::strategies
