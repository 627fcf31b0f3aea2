#include "fleetx/fleet/fleet.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "fleetx/base/cpu.h"
#include "fleetx/base/log.h"
#include "fleetx/comm/groups.h"
#include "fleetx/comm/join.h"
#include "fleetx/strategies/data_parallel.h"

namespace fleetx::fleet {
namespace {

struct Job {
  RoleMaker role;
  DistributedStrategy strategy;
  bool is_collective;
  std::shared_ptr<comm::Membership> joined = nullptr;  // workers only
  Mesh mesh = {};                                      // of the groups below
  std::map<std::string, std::shared_ptr<comm::Communicator>> groups = {};
  std::unique_ptr<Util> util = nullptr;
};

std::unique_ptr<Job>& slot() {
  static std::unique_ptr<Job> job;
  return job;
}

Job& job() {
  check_arg(slot() != nullptr, "this process is in no job yet: call fleet::init first");
  return *slot();
}

comm::Membership& joined() {
  check_arg(job().joined != nullptr, "this process is ",
            job().role.is_server() ? "a server" : "no worker",
            ", and only workers compute together");
  return *job().joined;
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

// Makes the communicators of these groups that are not there yet. All workers call it with the
// same arguments, so that they make them in the same order.
void connect(Job& job, const Mesh& mesh, const std::vector<std::string>& names) {
  if (mesh.axes() != job.mesh.axes()) job.groups.clear();
  job.mesh = mesh;
  comm::Communicator& workers = job.joined->workers();
  for (const std::string& name : names) {
    if (job.groups.contains(name)) continue;
    const std::vector<int> ranks = mesh.group(name);
    job.groups[name] = std::ssize(ranks) == workers.size()
                           ? std::shared_ptr<comm::Communicator>(job.joined, &workers)
                           : std::shared_ptr<comm::Communicator>(workers.group(ranks));
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
  if (made->role.is_worker()) {
    made->joined = std::make_shared<comm::Membership>(comm::join_workers(made->role.job()));
    comm::Communicator& workers = made->joined->workers();
    agree_on_instruction_set(workers);
    made->util = std::make_unique<Util>(workers);
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

void barrier_worker() { workers().barrier(); }
comm::Communicator& workers() { return joined().workers(); }
const Util& util() {
  joined();
  return *job().util;
}

DistributedOptimizer distributed_optimizer(std::shared_ptr<optim::Optimizer> optimizer,
                                           std::optional<DistributedStrategy> strategy) {
  check_arg(job().is_collective || server_num() == 0,
            "this job has parameter servers, and training with them is not built yet; start it "
            "without servers and call fleet::init with is_collective");
  DistributedStrategy chosen = strategy ? *std::move(strategy) : job().strategy;
  Mesh mesh = mesh_of(chosen, worker_num(), worker_index());
  return {std::move(optimizer), std::move(chosen), std::move(mesh),
          [](const Mesh& m, const std::vector<std::string>& groups) { connect(job(), m, groups); }};
}

}  // namespace fleetx::fleet
