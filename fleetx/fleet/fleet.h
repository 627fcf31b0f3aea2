// The job that this process is part of. Three lines make a program one of many workers:
//
//   fleet::init({.is_collective = true});                                       // 1
//   auto optimizer = fleet::distributed_optimizer(optim::Momentum({.lr = 0.1}));  // 2
//   optimizer.minimize(loss);                                                   // 3
//
// and `fleetrun --nproc_per_node=2 program` starts it. Alone it is worker 0 of 1. The functions are
// about one job per process and are called by one thread; all but init need init before.
//
// A job with parameter servers runs the same program in all its processes:
//
//   fleet::init();
//   fleet::distributed_optimizer(optim::Adam({.lr = 0.1})).minimize(loss);
//   if (fleet::is_server()) {
//     fleet::init_server();
//     fleet::run_server();                  // until all workers have ended
//   } else {
//     exe.run(startup, scope);
//     fleet::init_worker(scope);
//     ...
//     fleet::stop_worker();
//   }
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/fleet/role_maker.h"
#include "fleetx/fleet/util.h"
#include "fleetx/ps/save_options.h"
#include "fleetx/runtime/scope.h"

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
// All of them. What these two return ends with the next init or finalize. Workers that do not know
// each other's addresses (user-defined roles without worker_endpoints) have none. In a job with
// servers each call tells them that this worker is about to wait for the others (ps::Client::meet):
// ask before each use, all workers alike, and do not keep it.
comm::Communicator& workers();
// Those of comm_world: "worker", and where the job has servers "server" and "all" (util.h).
comm::Communicator& group(std::string_view comm_world);
const Util& util();

// Wraps an optimizer: what it adds to the program is then changed for this job. Without a strategy
// the one of init counts.
DistributedOptimizer distributed_optimizer(std::shared_ptr<optim::Optimizer> optimizer,
                                           std::optional<DistributedStrategy> strategy = {});
// The same, and how servers are used is said by `config` instead of strategy.a_sync.
DistributedOptimizer distributed_optimizer(std::shared_ptr<optim::Optimizer> optimizer,
                                           std::optional<DistributedStrategy> strategy,
                                           const ServerConfig& config);
template <class O>
DistributedOptimizer distributed_optimizer(O optimizer,
                                           std::optional<DistributedStrategy> strategy = {}) {
  return distributed_optimizer(
      std::shared_ptr<optim::Optimizer>(std::make_shared<O>(std::move(optimizer))),
      std::move(strategy));
}

// ---- jobs with parameter servers; all after minimize ----

// Of a server. Listens; with a folder it begins with what save_persistables has written there,
// whatever number of servers did.
void init_server(const std::string& model_dir = "");
// Serves until all workers have called stop_worker.
void run_server();
void load_server(const std::string& model_dir);  // the same as in init_server, after it

// Of a worker: connects it to the servers, which may start later. Servers that have no values yet
// take those that the first worker has in the scope; then the scope has the servers'. May be called
// before the startup program, which does the same then.
void init_worker(runtime::Scope& scope);
// Geo: what this worker has learned in the steps since its last exchange goes to the servers, and
// what others have learned comes into the scope. Before stop_worker, barriers and saves. It does
// nothing where there are no such steps, in other modes, and before init_worker.
void share_learned(runtime::Scope& scope);
// The servers have all gradients of this worker when it returns, and end when all have called it.
void stop_worker();
// Brings the parameters in the scope up to date.
void pull_parameters(runtime::Scope& scope);
// The servers write what they keep, with the optimizer's state, into a folder that they all see.
// Called by one worker. A process without servers writes the same from its tables and its scope.
void save_servers(const runtime::Scope& scope, const std::string& folder,
                  const ps::SaveOptions& options = {});
// Drops rows of tables (ps::SparseTable::shrink); how many. Called by one worker.
int64_t shrink(std::optional<float> threshold = {});
// The tables of which the servers keep the rows. In a job of one worker without servers this
// process keeps those that are declared for them (sparse_embedding), after minimize; then
// save_servers, shrink and serve_alone are about them.
std::vector<std::string> server_tables();
void load_own_tables(const std::string& folder);  // the rows of what save_servers has written
// See served_model.h.
ir::Names serve_alone(ir::Program& program, runtime::Scope& scope, const std::string& folder);

}  // namespace fleetx::fleet
