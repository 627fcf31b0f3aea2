#include "fleetx/fleet/fleet.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "fleetx/base/cpu.h"
#include "fleetx/base/log.h"
#include "fleetx/comm/groups.h"
#include "fleetx/fleet/describe_job.h"
#include "fleetx/fleet/meet.h"
#include "fleetx/fleet/own_tables.h"
#include "fleetx/fleet/served_model.h"
#include "fleetx/fleet/server_job.h"
#include "fleetx/fleet/server_tables.h"
#include "fleetx/strategies/data_parallel.h"

namespace fleetx::fleet {
namespace {

struct Job {
  RoleMaker role;
  DistributedStrategy strategy;
  bool is_collective;
  Meeting joined = {};  // workers only
  Mesh mesh = {};       // of the groups below
  std::map<std::string, std::shared_ptr<comm::Communicator>> groups = {};
  std::map<std::string, std::shared_ptr<comm::Communicator>, std::less<>> worlds = {};
  Util util{{.group = fleet::group,
             .place = [] { return std::pair(worker_index(), worker_num()); },
             .barrier = barrier_worker}};
  std::unique_ptr<ServerJob> servers = nullptr;     // where the job has some, after minimize
  std::shared_ptr<OwnTables> own_tables = nullptr;  // where it has none, after minimize
};

std::unique_ptr<Job>& slot() {
  static std::unique_ptr<Job> job;
  return job;
}

Job& job() {
  check_arg(slot() != nullptr, "this process is in no job yet: call fleet::init first");
  return *slot();
}

Meeting& joined() {
  check_arg(job().role.is_worker(), "this process is ",
            job().role.is_server() ? "a server" : "no worker",
            ", and only workers compute together");
  check_arg(job().joined.workers != nullptr || job().role.job().rejoin == 0,
            "this worker was started again while the others went on, so it can train with the "
            "servers, but takes no part in what workers compute together");
  check_arg(job().joined.workers != nullptr,
            "the workers of this job do not know each other: give worker_endpoints to the role "
            "maker, or start them with fleetrun");
  return job().joined;
}

ServerJob& servers(std::string_view call) {
  check_arg(job().servers != nullptr, call, ": ",
            job().role.server_num() == 0
                ? "this job has no parameter servers"
                : "call minimize of fleet::distributed_optimizer first; it says what the servers "
                  "keep");
  return *job().servers;
}

// What the servers keep, or this process in their place.
ps::JobSpec kept(const Job& job) {
  if (job.own_tables != nullptr) return job.own_tables->job();
  return job.servers != nullptr ? job.servers->tables() : ps::JobSpec{};
}

// Kernels choose layouts and sums by instruction set, so all workers use what the weakest has.
void agree_on_instruction_set(comm::Communicator& workers) {
  std::vector<int32_t> all(static_cast<size_t>(workers.size()));
  const auto own = static_cast<int32_t>(cpu::best_isa());
  workers.all_gather(&own, all.data(), 1, i32);
  const auto least = std::min_element(all.begin(), all.end());
  if (*least == own) return;
  const auto isa = static_cast<cpu::Isa>(*least);
  log::warning("fleet", "this worker could use ", cpu::name_of(cpu::best_isa()), ", but uses ",
               cpu::name_of(isa), ", which is what worker ", least - all.begin(), " has");
  cpu::limit_to(isa);
}

// Of a script for workers and servers that runs as one process: it keeps the tables itself.
std::optional<DistributedOptimizer::OnServers> tables_of_one_worker() {
  if (job().is_collective || worker_num() > 1) return std::nullopt;
  const ServerConfig alone{.mode = "alone"};
  const auto keep = [alone](const ir::Program& main, const ir::Program& startup) {
    ps::JobSpec tables = server_tables(main, startup, alone, 1, 1);
    std::vector<ParameterVars> dense = parameter_vars(main);
    std::erase_if(dense, [by_id = names_of(tables.sparse)](const ParameterVars& vars) {
      return by_id.contains(vars.name);
    });
    job().own_tables =
        std::make_shared<OwnTables>(std::move(tables), ParameterState(std::move(dense)));
    kernel::set_process_servers(job().own_tables);
  };
  return DistributedOptimizer::OnServers{alone, keep};
}

// The text of the first worker, for all.
std::string agree(const std::string& text) {
  comm::Communicator& all = workers();
  auto size = static_cast<int64_t>(text.size());
  all.broadcast(&size, 1, i64);
  std::string out = text;
  out.resize(static_cast<size_t>(size));
  all.broadcast(out.data(), size, u8);
  return out;
}

// Makes the communicators of these groups that are not there yet. All workers call it with the
// same arguments, so that they make them in the same order.
void connect(Job& job, const Mesh& mesh, const std::vector<std::string>& names) {
  if (is_describing()) return;  // the others are not there
  if (mesh.axes() != job.mesh.axes()) job.groups.clear();
  job.mesh = mesh;
  comm::Communicator& workers = *job.joined.workers;
  for (const std::string& name : names) {
    if (job.groups.contains(name)) continue;
    const std::vector<int> ranks = mesh.group(name);
    // A part of an axis that is all of it is a lane of its own for messages.
    const bool is_all = std::ssize(ranks) == workers.size() && name.find('/') == name.npos;
    job.groups[name] =
        is_all ? job.joined.workers : std::shared_ptr<comm::Communicator>(workers.group(ranks));
  }
  auto all = std::make_shared<comm::Groups>();
  for (const auto& [name, group] : job.groups) all->add(name, group);
  comm::set_process_groups(std::move(all));
}

}  // namespace

void init(InitOptions options) {
  finalize();
  auto made = std::make_unique<Job>(
      Job{.role = options.role_maker
                      ? *std::move(options.role_maker)
                      : RoleMaker::from_environment(options.is_collective ? JobKind::kCollective
                                                                          : JobKind::kServers),
          .strategy = std::move(options.strategy),
          .is_collective = options.is_collective});
  if (is_describing()) {
    describe_instead_of_running();
    made->joined.workers = std::move(comm::make_local(1).front());
  } else {
    made->joined = meet(made->role);
  }
  if (made->joined.workers != nullptr) {
    comm::Communicator& workers = *made->joined.workers;
    agree_on_instruction_set(workers);
    connect(*made, fleetx::mesh_of({}, workers.size(), workers.rank()), {strategies::kDataAxis});
  }
  slot() = std::move(made);
  // Registered after what the group itself has for the end of the process (MPI's finalize), so that
  // it comes before.
  static const int registered = std::atexit(finalize);
  FLEETX_CHECK(registered == 0);
}

bool is_initialized() { return slot() != nullptr; }

void finalize() {
  comm::set_process_groups(std::make_shared<comm::Groups>());
  kernel::set_process_servers(nullptr);
  slot().reset();
}

const RoleMaker& role() { return job().role; }
bool is_worker() { return role().is_worker(); }
bool is_server() { return role().is_server(); }
bool is_first_worker() { return role().is_first_worker(); }
int worker_index() { return role().worker_index(); }
int worker_num() { return role().worker_num(); }
int server_num() { return role().server_num(); }
std::vector<std::string> worker_endpoints() { return role().worker_endpoints(); }
std::vector<std::string> server_endpoints() { return role().server_endpoints(); }

void barrier_worker() {
  const bool rejoined = is_worker() && job().role.job().rejoin > 0;
  const bool group = job().joined.workers != nullptr;
  // The servers know who is alive: a barrier there outlives a worker that an async job does
  // without. Workers that do not know each other have no other.
  if (job().servers != nullptr && is_worker() &&
      (job().servers->worker().connected() || (!group && !rejoined)))
    return job().servers->worker().client().barrier();
  // The others have passed it: they train, and this worker has not connected yet.
  if (rejoined) return;
  workers().barrier();
}
comm::Communicator& workers() {
  comm::Communicator& all = *joined().workers;
  // Workers have unequal numbers of batches: who is ready first must not hold up the others' steps.
  if (job().servers != nullptr && is_worker() && job().servers->worker().connected())
    job().servers->worker().client().meet();
  return all;
}
comm::Communicator& group(std::string_view comm_world) {
  Job& j = job();
  if (comm_world == "worker" || (comm_world == "all" && j.role.server_num() == 0)) return workers();
  const auto it = j.worlds.find(comm_world);
  if (it != j.worlds.end()) return *it->second;
  return *j.worlds.emplace(std::string(comm_world), meet_servers(j.joined, j.role, comm_world))
              .first->second;
}
const Util& util() { return job().util; }

DistributedOptimizer distributed_optimizer(std::shared_ptr<optim::Optimizer> optimizer,
                                           std::optional<DistributedStrategy> strategy) {
  const DistributedStrategy& chosen = strategy ? *strategy : job().strategy;
  const ServerConfig config = server_num() > 0 ? server_config_of(chosen) : ServerConfig{};
  return distributed_optimizer(std::move(optimizer), std::move(strategy), config);
}

DistributedOptimizer distributed_optimizer(std::shared_ptr<optim::Optimizer> optimizer,
                                           std::optional<DistributedStrategy> strategy,
                                           const ServerConfig& config) {
  DistributedStrategy chosen = strategy ? *std::move(strategy) : job().strategy;
  if (job().is_collective || server_num() == 0) {
    Mesh mesh = mesh_of(chosen, worker_num(), worker_index());
    return {std::move(optimizer),
            std::move(chosen),
            std::move(mesh),
            [](const Mesh& m, const std::vector<std::string>& g) { connect(job(), m, g); },
            tables_of_one_worker(),
            agree};
  }
  // To its program a worker is alone: the others are behind the servers.
  check(config);
  const auto keep = [config](const ir::Program& main, const ir::Program& startup) {
    job().servers = std::make_unique<ServerJob>(main, startup, config, job().role);
  };
  return {std::move(optimizer), std::move(chosen), fleetx::mesh_of({}, 1, 0), nullptr,
          DistributedOptimizer::OnServers{config, keep}};
}

void init_server(const std::string& model_dir) { servers("init_server").listen(model_dir); }
void run_server() { servers("run_server").serve(); }
void load_server(const std::string& model_dir) { servers("load_server").load(model_dir); }
void init_worker(runtime::Scope& scope) { servers("init_worker").connect(scope); }
void share_learned(runtime::Scope& scope) {
  if (is_worker() && job().servers != nullptr) job().servers->share(scope);
}
void stop_worker() { servers("stop_worker").worker().leave(); }
void pull_parameters(runtime::Scope& scope) {
  if (job().own_tables == nullptr) servers("pull_parameters").pull(scope);
}
void save_servers(const runtime::Scope& scope, const std::string& folder,
                  const ps::SaveOptions& options) {
  if (job().own_tables != nullptr) return job().own_tables->save(scope, folder, options);
  servers("save_servers").worker().client().save(folder, options);
}
void load_own_tables(const std::string& folder) {
  check_arg(job().own_tables != nullptr, "this process keeps no tables of rows by id");
  job().own_tables->load(folder);
}
int64_t shrink(std::optional<float> threshold) {
  if (job().own_tables != nullptr) return job().own_tables->shrink(threshold);
  return servers("shrink").worker().client().shrink(threshold);
}
std::vector<std::string> server_tables() {
  if (!is_initialized()) return {};
  std::vector<std::string> names;
  for (const ps::SparseSpec& table : kept(job()).sparse) names.push_back(table.name);
  return names;
}
ir::Names serve_alone(ir::Program& program, runtime::Scope& scope, const std::string& folder) {
  return serve_alone(program, scope, kept(job()), folder);
}

}  // namespace fleetx::fleet
