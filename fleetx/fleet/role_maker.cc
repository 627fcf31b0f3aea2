#include "fleetx/fleet/role_maker.h"

#include <algorithm>
#include <map>
#include <set>

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"
#include "fleetx/comm/socket.h"

namespace fleetx::fleet {
namespace {

using StartedBy = JobEnv::StartedBy;
using Endpoints = std::vector<std::string>;

void check_endpoints(std::string_view who, std::string_view name, const Endpoints& endpoints) {
  std::set<std::string> seen;
  for (const std::string& endpoint : endpoints) {
    check_arg(!endpoint.empty(), who, ": ", name, " has an empty entry");
    check_arg(comm::parse_endpoint(endpoint).port > 0, who, ": ", name, ": '", endpoint,
              "' needs a port from 1 to 65535");
    check_arg(seen.insert(endpoint).second, who, ": ", name, " has '", endpoint, "' twice");
  }
}

void check_id(std::string_view who, int id, size_t count, std::string_view of) {
  check_arg(id >= 0 && static_cast<size_t>(id) < count, who, ": current_id ", id,
            " must be from 0 to ", static_cast<int>(count) - 1, ", since there are ", count, " ",
            of);
}

// What the user says takes the place of the launcher's variables; what a user sets for any job is
// still read.
JobEnv job_from(const std::map<std::string_view, std::string>& said,
                const JobEnv::Lookup& variables) {
  return JobEnv::from([&](std::string_view name) -> std::optional<std::string> {
    if (const auto found = said.find(name); found != said.end())
      return found->second.empty() ? std::nullopt : std::optional(found->second);
    for (const std::string_view kept :
         {job_var::kStore, job_var::kSecret, job_var::kJobId, job_var::kSelectedGpus})
      if (name == kept) return variables(name);
    return std::nullopt;
  });
}

}  // namespace

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kWorker: return "worker";
    case Role::kServer: return "server";
    case Role::kHeterWorker: return "heter worker";
    case Role::kAll: break;
  }
  return "all";
}

RoleMaker::RoleMaker(JobEnv job, JobKind kind)
    : job_(std::move(job)),
      kind_(kind),
      server_num_(static_cast<int>(job_.server_endpoints.size())) {}

Role RoleMaker::role() const {
  if (job_.role == JobRole::kWorker) return Role::kWorker;
  return job_.role == JobRole::kServer ? Role::kServer : Role::kHeterWorker;
}

RoleMaker RoleMaker::from_environment(JobKind kind, const JobEnv::Lookup& variables) {
  JobEnv job = JobEnv::from(variables);
  const bool servers = !job.server_endpoints.empty();
  if (kind == JobKind::kCollective) {
    check_arg(!servers, "the program asks for a collective job, but this one has servers (",
              job_var::kServerEndpoints, "='", join(job.server_endpoints, ","),
              "'): start it without servers, or do not ask for is_collective");
  } else if (servers) {
    check_arg(variables(job_var::kTrainersNum).has_value(), "environment variable ",
              job_var::kTrainersNum, " is missing: it is the number of workers");
  } else {
    check_arg(job.world == 1, "the job has ", job.world,
              " workers and no servers: ask for is_collective, or start it with servers (fleetrun "
              "--server_num)");
  }
  RoleMaker roles(std::move(job), kind);
  roles.alone_ = roles.job_.started_by == StartedBy::kByHand;
  return roles;
}

RoleMaker RoleMaker::user_defined(const UserDefined& roles, const JobEnv::Lookup& variables) {
  constexpr std::string_view kWho = "user-defined roles";
  check_arg(roles.role == Role::kWorker || roles.role == Role::kServer, kWho,
            ": role must be worker or server, not ", to_string(roles.role));
  check_arg(!roles.server_endpoints.empty(), kWho, ": server_endpoints is empty");
  check_endpoints(kWho, "server_endpoints", roles.server_endpoints);
  check_endpoints(kWho, "worker_endpoints", roles.worker_endpoints);
  const int known = static_cast<int>(roles.worker_endpoints.size());
  const int workers = roles.worker_num == 0 ? known : roles.worker_num;
  check_arg(workers > 0, kWho, ": worker_num must be > 0, got ", workers);
  check_arg(known == 0 || workers == known, kWho, ": worker_num is ", workers,
            ", but worker_endpoints has ", known, " entries");
  const bool server = roles.role == Role::kServer;
  check_id(kWho, roles.current_id,
           server ? roles.server_endpoints.size() : static_cast<size_t>(workers),
           server ? "servers" : "workers");
  std::map<std::string_view, std::string> said{
      {job_var::kTrainersNum, std::to_string(workers)},
      {job_var::kTrainerEndpoints, join(roles.worker_endpoints, ",")},
      {job_var::kServerEndpoints, join(roles.server_endpoints, ",")},
      {job_var::kTrainingRole, server ? "PSERVER" : "TRAINER"},
  };
  if (server) {
    const std::string& own = roles.server_endpoints[static_cast<size_t>(roles.current_id)];
    said[job_var::kPodIp] = own.substr(0, own.rfind(':'));
    said[job_var::kPort] = own.substr(own.rfind(':') + 1);
  } else {
    said[job_var::kTrainerId] = std::to_string(roles.current_id);
  }
  JobEnv job = job_from(said, variables);
  job.started_by = StartedBy::kByHand;
  return RoleMaker(std::move(job), JobKind::kServers);
}

RoleMaker RoleMaker::user_defined_collective(int current_id, const Endpoints& worker_endpoints,
                                             const JobEnv::Lookup& variables) {
  constexpr std::string_view kWho = "user-defined collective roles";
  check_arg(!worker_endpoints.empty(), kWho, ": worker_endpoints is empty");
  check_endpoints(kWho, "worker_endpoints", worker_endpoints);
  check_id(kWho, current_id, worker_endpoints.size(), "worker_endpoints");
  if (variables(job_var::kTrainerEndpoints)) {
    JobEnv given = JobEnv::from(variables);
    check_arg(given.worker_endpoints == worker_endpoints && given.rank == current_id, kWho,
              ": worker ", current_id, " of ", join(worker_endpoints, ","),
              ", but its launcher started it as ", given.rank, " of ",
              join(given.worker_endpoints, ","));
    return RoleMaker(std::move(given), JobKind::kCollective);
  }
  const std::string all = join(worker_endpoints, ",");
  JobEnv job = job_from(
      {{job_var::kTrainerId, std::to_string(current_id)}, {job_var::kTrainerEndpoints, all}},
      variables);
  job.started_by = StartedBy::kByHand;
  meet_at_first_worker(job);
  return RoleMaker(std::move(job), JobKind::kCollective);
}

void RoleMaker::set_server_endpoints(Endpoints endpoints, std::string secret,
                                     std::optional<int> listen_fd) {
  check_endpoints("servers", "endpoints", endpoints);
  FLEETX_CHECK(std::ssize(endpoints) == server_num_);
  job_.server_endpoints = std::move(endpoints);
  job_.secret = std::move(secret);
  job_.listen_fd = listen_fd;
  if (is_server()) job_.endpoint = job_.server_endpoints[static_cast<size_t>(job_.rank)];
}

RoleMaker RoleMaker::mpi_symmetric(const JobEnv::Lookup& variables) {
  JobEnv job = JobEnv::from(variables);
  check_arg(job.started_by == StartedBy::kMpi,
            "MPI roles: this process was not started by mpirun; start 2 processes for every "
            "worker: mpirun -np 4 PROGRAM");
  check_arg(job.world % 2 == 0, "MPI roles: mpirun started ", job.world,
            " processes; it must be an even number, half of them servers");
  job.role = job.rank % 2 == 0 ? JobRole::kServer : JobRole::kWorker;
  for (int* number : {&job.rank, &job.world, &job.local_rank}) *number /= 2;
  job.local_world = std::max(1, job.local_world / 2);
  const int servers = job.world;
  RoleMaker roles(std::move(job), JobKind::kServers);
  roles.server_num_ = servers;
  return roles;
}

}  // namespace fleetx::fleet
