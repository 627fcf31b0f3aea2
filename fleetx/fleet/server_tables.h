// What the parameter servers of a job keep and how they change it, read off a program that has its
// updates: every process of a job finds the same.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "fleetx/fleet/server_config.h"
#include "fleetx/ir/program.h"
#include "fleetx/ps/job_spec.h"

namespace fleetx::fleet {

// Of a program after the optimizer and before the update strategies. Tables of rows are those of
// strategies::sparse_tables; all other trained parameters are dense, in one table for each learning
// rate (geo: the tables are those of strategies::declared_tables, and servers add up what workers
// push; alone: only these tables are kept). What servers cannot do (an
// initializer that is no function of the row) is kInvalidArgument.
ps::JobSpec server_tables(const ir::Program& main, const ir::Program& startup,
                          const ServerConfig& config, int workers, int servers);

std::set<std::string> names_of(const std::vector<ps::SparseSpec>& tables);

// Geo: how workers train the rows of these tables.
std::map<std::string, ps::UpdateRulePtr> own_rules(const ir::Program& main,
                                                   const ir::Program& startup,
                                                   const ServerConfig& config);

}  // namespace fleetx::fleet
