#include "fleetx/strategies/state.h"

#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/stand_in.h"

namespace fleetx::strategies {

void add_state(Programs& programs, const std::string& name, const ir::TensorType& type,
               double value, const ir::Placement& placement) {
  ir::VarInfo info;
  info.name = name;
  info.type = type;
  info.persistable = info.stop_gradient = true;
  info.placement = placement;
  ir::Rewriter(programs.main).add_var(info);
  ir::Rewriter startup(programs.startup);
  startup.add_var(info);
  startup.append({.type = "fill",
                  .outputs = {{"out", {name}}},
                  .attrs = {{"shape", type.shape}, {"dtype", type.dtype}, {"value", value}}});
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
