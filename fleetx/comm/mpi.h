// Backend mpi: the ranks were started by mpirun or srun. A separate library links MPI and is
// loaded on demand, so that programs run where MPI is not installed.
#pragma once

#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

// Without a store, a dead rank is detected only by timeouts.
std::unique_ptr<Communicator> make_mpi(const CommOptions& options);

}  // namespace fleetx::comm

// The entry point of the library; the caller owns the result.
extern "C" fleetx::comm::Communicator* fleetx_make_mpi(const fleetx::comm::CommOptions* options);
