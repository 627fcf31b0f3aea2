// What fleet/ needs to know about the program of a worker of a job with parameter servers.
#pragma once

#include <set>
#include <string>

#include "fleetx/ir/program.h"

namespace fleetx::strategies {

// The trained parameters whose rows the servers keep by id: those that only lookups with sparse
// gradients read. One that is declared for the servers (is_distributed) but is read in another way
// is kInvalidArgument.
std::set<std::string> sparse_tables(const ir::Program& main);

// In a job without servers: those among them that this process can keep by id, as a server would,
// because they are declared for the servers and have an initializer that makes single rows. Others
// stay variables of the program.
std::set<std::string> declared_tables(const ir::Program& main, const ir::Program& startup);
// Strategies with which tables stay in the program.
std::set<std::string> strategies_without_tables();

// Makes the lookups of a program that only computes (a test program from before minimize) ask the
// servers, for tables that they have.
void look_up_on_servers(ir::Program& program, const std::set<std::string>& tables);

}  // namespace fleetx::strategies
