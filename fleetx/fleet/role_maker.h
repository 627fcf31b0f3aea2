// Who this process is in its job, and who the others are:
//
//   const auto roles = RoleMaker::from_environment(JobKind::kCollective);  // fleetrun, mpirun, ...
//   roles.worker_index(), roles.worker_num(), roles.is_first_worker();
//   comm::Membership joined = comm::join_workers(roles.job());
//
// A value; safe to share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/base/env.h"
#include "fleetx/base/job_env.h"

namespace fleetx::fleet {

enum class Role { kWorker = 1, kServer = 2, kHeterWorker = 3, kAll = 4 };
std::string_view to_string(Role role);

enum class JobKind { kCollective, kServers };  // kServers: with parameter servers

class RoleMaker {
 public:
  // From the variables of fleetrun, PaddleCloud, mpirun or srun (base/job_env.h). Where none of
  // them started it, this is the only worker, at 127.0.0.1:6170. A job of the other kind, or a
  // variable that is missing, is kInvalidArgument.
  static RoleMaker from_environment(JobKind kind, const JobEnv::Lookup& variables = env::get);

  // A job with servers whose processes are started by hand, each with an id of its own among those
  // of its role. Addresses are HOST:PORT.
  struct UserDefined {
    int current_id = 0;
    Role role = Role::kWorker;
    int worker_num = 0;  // 0: as many as worker_endpoints
    std::vector<std::string> server_endpoints = {};
    std::vector<std::string> worker_endpoints = {};  // may be empty
  };
  static RoleMaker user_defined(const UserDefined& roles,
                                const JobEnv::Lookup& variables = env::get);

  // A collective job whose workers are started by hand. They meet in a store that worker 0 keeps
  // at its endpoint (or at FLEETX_STORE). The job's secret follows from the endpoints; on a network
  // you do not trust, set FLEETX_JOB_SECRET to the same random hex digits everywhere. Under
  // fleetrun the endpoints must be those that it gave.
  static RoleMaker user_defined_collective(int current_id,
                                           const std::vector<std::string>& worker_endpoints,
                                           const JobEnv::Lookup& variables = env::get);

  // `mpirun -np 2n`: ranks 0 2 4 ... are servers, 1 3 5 ... workers, and rank / 2 their index.
  // mpirun does not tell addresses, so there are no endpoints until set_server_endpoints.
  static RoleMaker mpi_symmetric(const JobEnv::Lookup& variables = env::get);

  Role role() const;
  bool is_worker() const { return role() == Role::kWorker; }
  // Heter workers count as servers: they serve the workers.
  bool is_server() const { return !is_worker(); }
  bool is_first_worker() const { return is_worker() && job_.rank == 0; }
  // The index of this process among those of its role, whichever is asked for.
  int worker_index() const { return job_.rank; }
  int server_index() const { return job_.rank; }
  int worker_num() const { return job_.world; }
  int server_num() const { return server_num_; }
  int node_num() const { return job_.nodes; }
  int local_rank() const { return job_.local_rank; }
  const std::vector<std::string>& worker_endpoints() const { return job_.worker_endpoints; }
  const std::vector<std::string>& server_endpoints() const { return job_.server_endpoints; }
  // Found out by asking the servers. A server has a socket that is bound to its own.
  void set_server_endpoints(std::vector<std::string> endpoints, std::string secret,
                            std::optional<int> listen_fd);
  JobKind kind() const { return kind_; }
  // Nobody said that this process is part of a job.
  bool is_non_distributed() const { return alone_; }

  const JobEnv& job() const { return job_; }  // for comm::join_workers

 private:
  RoleMaker(JobEnv job, JobKind kind);

  JobEnv job_;
  JobKind kind_;
  int server_num_;
  bool alone_ = false;
};

}  // namespace fleetx::fleet
