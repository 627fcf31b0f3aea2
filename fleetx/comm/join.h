// Makes a worker part of its job, whoever started it:
//
//   Joined job = join_workers(JobEnv::from_environment());
//   job.workers().all_reduce(...);
//
// fleetrun: through its store. mpirun: through MPI. srun: rank 0 keeps the store, on its machine,
// at a port that follows from the job (FLEETX_STORE=ip:port chooses another). By hand
// (fleet::RoleMaker::user_defined_collective): rank 0 keeps it at job.store. Alone: a group of one.
#pragma once

#include <memory>

#include "fleetx/base/job_env.h"
#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

class Joined {
 public:
  Joined(Joined&&) = default;
  // Where rank 0 keeps the store, it waits until the others do not need it any more.
  ~Joined();

  Communicator& workers() const { return *workers_; }
  // Null: a group of one, or MPI.
  const std::shared_ptr<StoreClient>& store() const { return store_; }

 private:
  friend Joined join_workers(const JobEnv& job);
  Joined() = default;

  std::unique_ptr<StoreServer> server_;
  std::shared_ptr<StoreClient> store_;
  std::unique_ptr<Communicator> workers_;
  int members_ = 1;
  bool without_launcher_ = false;
};

Joined join_workers(const JobEnv& job);

}  // namespace fleetx::comm
