#include "fleetx/strategies/state.h"

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/stand_in.h"

namespace fleetx::strategies {
namespace {

ir::Rewriter::Position first_writer(ir::Rewriter& rw, const std::string& var) {
  return std::find_if(rw.begin(), rw.end(), [&](const ir::Op& op) { return op.writes(var); });
}

}  // namespace

void add_state(Programs& programs, const std::string& name, const ir::TensorType& type,
               double value, const ir::Placement& placement) {
  ir::VarInfo info;
  info.name = name;
  info.type = type;
  info.persistable = info.stop_gradient = true;
  info.placement = placement;
  ir::Rewriter(programs.main).add_var(info);
  start_state(programs.startup, info, value);
}

void start_state(ir::Program& startup, const ir::VarInfo& info, double value) {
  ir::Rewriter rw(startup);
  if (const ir::VarInfo* old = startup.find(info.name)) {
    const auto first = first_writer(rw, info.name);
    const bool same = old->type == info.type && old->placement == info.placement &&
                      first != rw.end() && first->type() == "fill" &&
                      first->attr<double>("value") == value;
    check_arg(same, "'", info.name, "', which is to start as ", info.type, " of ", value,
              ", is in the startup program already, as ", old->type,
              " that starts otherwise; give this program a startup program of its own, or the "
              "same settings to all that share this one");
    return;
  }
  rw.add_var(info);
  rw.append({.type = "fill",
             .outputs = {{"out", {info.name}}},
             .attrs = {{"shape", info.type.shape}, {"dtype", info.type.dtype}, {"value", value}}});
}

void set_stand_in(Programs& programs, const std::string& name, const std::string& other) {
  for (ir::Program* program : {&programs.main, &programs.startup})
    ir::set_stand_in(ir::Rewriter(*program).edit_var(name), other);
}

void place_state(Programs& programs, const std::string& name, const ir::Placement& placement) {
  ir::Rewriter(programs.main).edit_var(name).placement = placement;
  if (programs.startup.find(name) != nullptr)
    ir::Rewriter(programs.startup).edit_var(name).placement = placement;
}

}  // namespace fleetx::strategies
