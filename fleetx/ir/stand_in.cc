#include "fleetx/ir/stand_in.h"

namespace fleetx::ir {
namespace {

constexpr const char* kStandIn = "stand_in";

}  // namespace

std::optional<std::string> stand_in_of(const VarInfo& var) {
  const auto it = var.attrs.find(kStandIn);
  if (it == var.attrs.end() || it->second.type() != AttrType::kString) return std::nullopt;
  return it->second.as<std::string>();
}

void set_stand_in(VarInfo& var, const std::string& name) {
  var.attrs.insert_or_assign(kStandIn, name);
}

}  // namespace fleetx::ir
