// Connects a worker with the other workers of its job, whichever launcher started it:
//
//   Membership job = join_workers(JobEnv::from_environment());
//   job.workers().all_reduce(...);
//
// fleetrun: through its store. mpirun: through MPI. srun: rank 0 serves the store on its machine,
// at a port derived from the job id (FLEETX_STORE=ip:port overrides it). Started by hand
// (fleet::RoleMaker::user_defined_collective) or by a launcher that sets the PADDLE_* variables
// alone: rank 0 serves it at job.store, by default its own endpoint. A single worker: a group of
// one.
#pragma once

#include <memory>

#include "fleetx/base/job_env.h"
#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

class Membership {
 public:
  Membership(Membership&&) = default;
  // If rank 0 serves the store, it waits here until no worker needs it any more.
  ~Membership();

  Communicator& workers() const { return *workers_; }
  // Null: a group of one, or MPI.
  const std::shared_ptr<StoreClient>& store() const { return store_; }

 private:
  friend Membership join_workers(const JobEnv& job);
  Membership() = default;

  std::unique_ptr<StoreServer> server_;
  std::shared_ptr<StoreClient> store_;
  std::unique_ptr<Communicator> workers_;
  int members_ = 1;
  bool without_launcher_ = false;
};

Membership join_workers(const JobEnv& job);

}  // namespace fleetx::comm
