#include "fleetx/strategies/owners.h"

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/base/mesh.h"
#include "fleetx/ir/infer.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/strategies/pipeline_unroll.h"

namespace fleetx::strategies {

Owners::Owners(const ir::Program& main, const std::vector<ir::Training::Parameter>& parameters,
               Among among)
    : among_(std::move(among)), loads_(static_cast<size_t>(among_.ranks)) {
  std::vector<std::pair<double, std::string>> by_size;
  for (const ir::Training::Parameter& p : parameters) {
    by_size.emplace_back(ir::bytes_of(main.var(p.name).type), p.name);
    // "pp", or where the parameter has been divided already, "pp+dp".
    const auto owner = ir::owner_of(main.var(p.name));
    const auto axes = owner ? Mesh::axes_of(owner->group) : std::vector<std::string>{};
    const bool of_stage = !axes.empty() && axes.front() == kStageAxis;
    owners_[p.name].stage = !of_stage          ? kNoStage
                            : axes.size() == 1 ? owner->rank
                                               : owner->rank / among_.ranks;
  }
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::map<int, std::vector<double>> loads;
  for (const auto& [bytes, name] : by_size) {
    std::vector<double>& of_stage = loads[owners_.at(name).stage];
    of_stage.resize(static_cast<size_t>(among_.ranks));
    const auto least = std::min_element(of_stage.begin(), of_stage.end());
    *least += bytes;
    owners_.at(name).rank = static_cast<int>(least - of_stage.begin());
  }
  for (const int stage : {kNoStage, among_.stage})
    for (size_t i = 0; i < loads[stage].size(); ++i) loads_[i] += loads[stage][i];
}

const Owners::Found& Owners::find(std::string_view parameter) const {
  const auto it = owners_.find(parameter);
  FLEETX_CHECK(it != owners_.end(), "nobody owns '", parameter, "'");
  return it->second;
}

bool Owners::is_here(std::string_view parameter) const {
  const int stage = find(parameter).stage;
  return stage == kNoStage || stage == among_.stage;
}

ir::Owner Owners::place(std::string_view parameter) const {
  const auto& [stage, rank] = find(parameter);
  if (stage == kNoStage) return {among_.group, rank};
  return {str(kStageAxis, "+", among_.group), stage * among_.ranks + rank};
}

bool has_owner(const ir::Program& main, const ir::Training::Parameter& p) {
  const auto owner = ir::gradient_owner(main.var(p.gradient));
  return owner && owner->group != kStageAxis;
}

std::optional<int> other_stage_of(const ir::Program& main, const ir::Training::Parameter& p) {
  const auto owner = ir::gradient_owner(main.var(p.gradient));
  if (!owner || owner->group != kStageAxis) return std::nullopt;
  return owner->rank;
}

void place_with_owner(Programs& programs, const std::string& state, const ir::Owner& owner) {
  for (ir::Program* program : {&programs.main, &programs.startup})
    if (program->find(state) != nullptr)
      ir::set_owner(ir::Rewriter(*program).edit_var(state), owner);
}

void forget_first_value(ir::Program& startup, const std::string& state) {
  if (startup.find(state) == nullptr) return;
  ir::Rewriter rw(startup);
  for (auto op = rw.begin(); op != rw.end();) op = op->writes(state) ? rw.erase(op) : std::next(op);
  rw.erase_var(state);
}

}  // namespace fleetx::strategies
