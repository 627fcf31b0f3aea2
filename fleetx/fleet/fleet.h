// The job that this process is part of. Three lines make a program one of many workers:
//
//   fleet::init({.is_collective = true});                                       // 1
//   auto optimizer = fleet::distributed_optimizer(optim::Momentum({.lr = 0.1}));  // 2
//   optimizer.minimize(loss);                                                   // 3
//
// and `fleetrun --nproc_per_node=2 program` starts it. Alone it is worker 0 of 1. The functions are
// about one job per process and are called by one thread; all but init need init before.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/fleet/role_maker.h"
#include "fleetx/fleet/util.h"

namespace fleetx::fleet {

struct InitOptions {
  bool is_collective = false;  // false: workers and parameter servers, where the job has servers
  std::optional<RoleMaker> role_maker = {};  // none: what the environment says
  DistributedStrategy strategy = {};         // of all distributed_optimizer calls that give none
};

// Workers find each other here; all call it. Calling it again starts anew.
void init(InitOptions options = {});
bool is_initialized();
// Leaves the job: groups and connections end. At the end of a program it happens by itself.
void finalize();

const RoleMaker& role();
bool is_worker();
bool is_server();
bool is_first_worker();
int worker_index();
int worker_num();
int server_num();
std::vector<std::string> worker_endpoints();
std::vector<std::string> server_endpoints();

void barrier_worker();
// All of them. What these two return ends with the next init or finalize.
comm::Communicator& workers();
const Util& util();

// Wraps an optimizer: what it adds to the program is then changed for this job. Without a strategy
// the one of init counts.
DistributedOptimizer distributed_optimizer(std::shared_ptr<optim::Optimizer> optimizer,
                                           std::optional<DistributedStrategy> strategy = {});
template <class O>
DistributedOptimizer distributed_optimizer(O optimizer,
                                           std::optional<DistributedStrategy> strategy = {}) {
  return distributed_optimizer(
      std::shared_ptr<optim::Optimizer>(std::make_shared<O>(std::move(optimizer))),
      std::move(strategy));
}

}  // namespace fleetx::fleet
