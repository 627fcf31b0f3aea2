#include "fleetx/ir/owned.h"

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/base/mesh.h"
#include "fleetx/base/mesh_part.h"

namespace fleetx::ir {
namespace {

constexpr const char* kGroup = "part_owners";
constexpr const char* kRank = "part_owner";

bool is_along(std::string_view group, std::string_view axis) {
  const auto axes = Mesh::axes_of(group);
  return std::any_of(axes.begin(), axes.end(),
                     [&](const std::string& one) { return whole_axis(one) == whole_axis(axis); });
}

}  // namespace

std::optional<Owner> owner_of(const VarInfo& var) {
  if (var.placement.is_owned()) return Owner{var.placement.axis, var.placement.owner};
  const auto group = var.attrs.find(kGroup), rank = var.attrs.find(kRank);
  if (group == var.attrs.end() || rank == var.attrs.end()) return std::nullopt;
  return Owner{group->second.as<std::string>(), static_cast<int>(rank->second.as<int64_t>())};
}

void set_owner(VarInfo& var, const Owner& owner) {
  if (!var.placement.is_sharded()) {
    FLEETX_CHECK(var.placement.is_replicated() || var.placement.is_owned(), "'", var.name, "' is ",
                 var.placement, " and cannot belong to rank ", owner.rank, " of '", owner.group,
                 "'");
    var.placement = Placement::owned(owner.group, owner.rank);
    return;
  }
  var.attrs.insert_or_assign(kGroup, owner.group);
  var.attrs.insert_or_assign(kRank, owner.rank);
}

bool differs_along(const VarInfo& var, std::string_view axis) {
  const Placement& p = var.placement;
  if (!p.is_replicated() && !p.is_transient() && is_along(p.axis, axis)) return true;
  const auto owner = owner_of(var);
  return owner && is_along(owner->group, axis);
}

}  // namespace fleetx::ir
