// Backend mpi: the ranks were started by mpirun or srun. MPI is seen by a library of its own that
// is opened when this backend is asked for, so that programs run where there is none.
#pragma once

#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

// The store may be missing: then only deadlines tell that a rank has died.
std::unique_ptr<Communicator> make_mpi(const CommOptions& options);

}  // namespace fleetx::comm

// What the library offers: the caller owns the result.
extern "C" fleetx::comm::Communicator* fleetx_make_mpi(const fleetx::comm::CommOptions* options);
