// The smallest job: the workers find each other, add up one number each, and end.
//
//   fleetrun --nproc_per_node=4 hello_fleet      or mpirun -np 4, or srun --ntasks=4
#include <cstdio>
#include <exception>

#include "fleetx/base/job_env.h"
#include "fleetx/comm/join.h"

int main() {
  using namespace fleetx;
  try {
    const JobEnv job = JobEnv::from_environment();
    const comm::Membership joined = comm::join_workers(job);
    float sum = static_cast<float>(job.rank + 1);
    joined.workers().all_reduce(&sum, 1, f32);
    if (job.rank == 0)
      std::printf("%d workers add up to %g\n", job.world, static_cast<double>(sum));
    return sum == static_cast<float>(job.world * (job.world + 1) / 2) ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hello_fleet: %s\n", e.what());
    return 1;
  }
}
