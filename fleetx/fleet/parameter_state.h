// The parameters of a program with the optimizer's state, in a scope and in the snapshots of
// servers: what one process has saved goes on with servers, and what servers have saved in one
// process.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fleetx/ir/program.h"
#include "fleetx/ps/table_service.h"
#include "fleetx/runtime/scope.h"

namespace fleetx::fleet {

// The variables of one parameter, in the order of a server's record (ps/update.h).
struct ParameterVars {
  std::string name;
  Shape shape{};
  ir::Names states{}, scalars{};
};
// Of all parameters that ops of the program update; what is not f32 is left out.
std::vector<ParameterVars> parameter_vars(const ir::Program& main);

// As a server that keeps these parameters would have them.
class ParameterState {
 public:
  explicit ParameterState(std::vector<ParameterVars> vars);

  // Calls with the table of a server that holds all of it, as the scope has it.
  void with_table(const runtime::Scope& scope,
                  const std::function<void(ps::TableService& table)>& call) const;

 private:
  std::vector<ParameterVars> vars_;
  ps::JobSpec job_;
};

// Those of these variables of the program that the snapshot in the folder has: parameters, states,
// scalars. A matrix may have been a table of the servers: rows that they did not have are zeros.
// Another model or optimizer is kInvalidArgument.
std::map<std::string, Tensor> read_variables(const ir::Program& program, const std::string& folder,
                                             const std::set<std::string>& names);

}  // namespace fleetx::fleet
