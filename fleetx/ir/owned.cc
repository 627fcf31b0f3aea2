#include "fleetx/ir/owned.h"

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/base/mesh.h"
#include "fleetx/base/mesh_part.h"

namespace fleetx::ir {
namespace {

// Names of attributes.
struct Keys {
  const char *group, *rank;
};
constexpr Keys kPart{"part_owners", "part_owner"};  // of a part
constexpr Keys kGradient{"owners", "owner"};        // of a gradient
constexpr const char* kStage = "stage";

std::optional<Owner> read(const VarInfo& var, const Keys& keys) {
  const auto group = var.attrs.find(keys.group), rank = var.attrs.find(keys.rank);
  if (group == var.attrs.end() || rank == var.attrs.end()) return std::nullopt;
  return Owner{group->second.as<std::string>(), static_cast<int>(rank->second.as<int64_t>())};
}

void write(VarInfo& var, const Keys& keys, const Owner& owner) {
  var.attrs.insert_or_assign(keys.group, owner.group);
  var.attrs.insert_or_assign(keys.rank, owner.rank);
}

bool is_along(std::string_view group, std::string_view axis) {
  const auto axes = Mesh::axes_of(group);
  return std::any_of(axes.begin(), axes.end(),
                     [&](const std::string& one) { return whole_axis(one) == whole_axis(axis); });
}

}  // namespace

std::optional<Owner> owner_of(const VarInfo& var) {
  if (var.placement.is_owned()) return Owner{var.placement.axis, var.placement.owner};
  return read(var, kPart);
}

void set_owner(VarInfo& var, const Owner& owner) {
  if (!var.placement.is_sharded()) {
    FLEETX_CHECK(var.placement.is_replicated() || var.placement.is_owned(), "'", var.name, "' is ",
                 var.placement, " and cannot belong to rank ", owner.rank, " of '", owner.group,
                 "'");
    var.placement = Placement::owned(owner.group, owner.rank);
    return;
  }
  write(var, kPart, owner);
}

std::optional<Owner> gradient_owner(const VarInfo& gradient) { return read(gradient, kGradient); }

void set_gradient_owner(VarInfo& gradient, const Owner& owner) {
  FLEETX_CHECK(!gradient.persistable, "the gradient '", gradient.name, "' is persistable");
  write(gradient, kGradient, owner);
}

std::optional<int> stage_of_value(const VarInfo& var) {
  const auto stage = var.attrs.find(kStage);
  if (stage == var.attrs.end()) return std::nullopt;
  return static_cast<int>(stage->second.as<int64_t>());
}

void set_stage_of_value(VarInfo& var, int stage) { var.attrs.insert_or_assign(kStage, stage); }

std::string owner_error(const VarInfo& var) {
  const auto stage = var.attrs.find(kStage);
  if (stage != var.attrs.end() && stage->second.type() != AttrType::kInt)
    return str("has the attribute ", kStage, "=", stage->second, "; it must be a number");
  for (const Keys& keys : {kPart, kGradient}) {
    const auto group = var.attrs.find(keys.group), rank = var.attrs.find(keys.rank);
    if (group == var.attrs.end() && rank == var.attrs.end()) continue;
    if (group == var.attrs.end() || rank == var.attrs.end())
      return str("has one of the attributes '", keys.rank, "' and '", keys.group,
                 "', which belong together");
    if (group->second.type() != AttrType::kString || group->second.as<std::string>().empty())
      return str("has the attribute ", keys.group, "=", group->second,
                 "; it must be the name of a group");
    if (rank->second.type() != AttrType::kInt || rank->second.as<int64_t>() < 0)
      return str("has the attribute ", keys.rank, "=", rank->second,
                 "; it must be a rank of the group");
  }
  return "";
}

bool differs_along(const VarInfo& var, std::string_view axis) {
  const Placement& p = var.placement;
  if (!p.is_replicated() && !p.is_transient() && is_along(p.axis, axis)) return true;
  const auto owner = owner_of(var);
  return owner && is_along(owner->group, axis);
}

}  // namespace fleetx::ir
