// State that one rank of an axis has, whole, and the others do not have at all:
//
//   state m : f32[10] per_rank(dp, sum) {owner=1}
//
// It is per rank, with an attribute that says which. Files hold it like replicated state, so that
// any other division can load it.
#pragma once

#include <optional>
#include <string>

#include "fleetx/ir/program.h"

namespace fleetx::ir {

inline constexpr const char* kOwnerAttr = "owner";

inline std::optional<int> owner_of(const VarInfo& var) {
  const auto it = var.attrs.find(kOwnerAttr);
  if (it == var.attrs.end() || !var.persistable || !var.placement.is_per_rank())
    return std::nullopt;
  return it->second.as<int>();
}

inline void set_owner(VarInfo& var, std::string axis, int owner) {
  var.placement = Placement::per_rank(std::move(axis), Placement::Resize::kSum);
  var.attrs.insert_or_assign(kOwnerAttr, owner);
}

}  // namespace fleetx::ir
